"""Records that a model read in documents: their places, corrections, and the reload."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from model import Model
from service import Service

import quern
from quern._models import plain_text

SCHEMA = {"item": "what is offered", "price": "for one, in EUR", "stock": "how many", "unit/size ?": "of the item"}
# An emoji is one character here and in the positions of the service. A form feed ends a page.
PAGES = (
    "🔩🔩 Our prices\n🔩 Bolt M6 costs 1.20 EUR, 40 in stock\n🔩 Bolt M8 costs 1.50 EUR, 12 in stock\n"
    "\fMore\nNut <b>M6</b> costs 0.10 EUR, 7 in stock\n"
)


@pytest.fixture
def mine(modelled: Service) -> Iterator[quern.Namespace]:
    with quern.connect(modelled.url, modelled.token("ada")) as client:
        yield client.namespace("shop")


def loaded(shop: quern.Namespace, name: str, folder: Path, text: str = PAGES) -> tuple[quern.Dataset, quern.Load]:
    offers = shop.create_dataset(name, "One row for each offer", SCHEMA)
    (folder / f"{name}.txt").write_text(text)
    types = {"price": "double", "stock": "bigint"}
    return offers, shop.upload(folder / f"{name}.txt", name, options={"extract": "model", "types": types})


def test_a_record_beside_its_document(mine: quern.Namespace, tmp_path: Path) -> None:
    offers, load = loaded(mine, "beside", tmp_path)
    first, second, third = offers.records(load)
    assert [(one.file, one.page, one.row) for one in (first, second, third)] == [
        ("beside.txt", page, row) for page, row in ((1, 1), (1, 2), (2, 3))
    ]
    assert list(first.text()) == [1] and first.text()[1].startswith("🔩🔩 Our prices\n")
    price = first["price"]
    assert (float(price.value or 0), price.flag, price.corrected, price.pending) == (1.2, None, False, False)
    assert price.context(2) == quern.Place("beside.txt", 1, "🔩 ", price.quote, "\n🔩")
    assert price.quote == "Bolt M6 costs 1.20 EUR, 40 in stock"
    assert str(price.context(2)) == "beside.txt, page 1: 🔩 [Bolt M6 costs 1.20 EUR, 40 in stock]\n🔩"
    nut = third["item"].context(1000)
    assert nut and (nut.page, nut.before, nut.after.strip()) == (2, "More\n", "")
    assert "<mark>Nut &lt;b&gt;M6&lt;/b&gt; costs" in nut._repr_html_()
    assert "&lt;b&gt;" in third._repr_html_() and "<b>M6" not in third._repr_html_()
    with pytest.raises(KeyError, match="The model said nothing about 'colour'"):
        first["colour"]
    assert [one.id for one in offers.records(load.id, flagged=True)] == [second.id]


def test_a_correction_stays(mine: quern.Namespace, model: Model, tmp_path: Path) -> None:
    offers, load = loaded(mine, "corrected", tmp_path)
    (record,) = offers.records(load, flagged=True)
    (price,) = record.doubted
    assert (price.name, price.value, price.flag, price.said) == ("price", None, "valueNotInQuote", "1.80 EUR")
    assert str(record).startswith("corrected.txt, page 1, row 2\n  - item: Bolt M8") and "the model said '1.80 EUR'" in str(record)
    record.correct("price", Decimal("1.50"))
    record.correct("unit/size ?", "box")
    record.correct("stock", None)
    assert (float(record["price"].value or 0), record["price"].corrected, record["price"].pending) == (1.5, True, True)
    assert record["unit/size ?"].value == "box" and record["stock"].value is None and record["stock"].corrected
    assert record.doubted == [] == list(offers.records(load, flagged=True))
    with pytest.raises(quern.ValidationFailed):
        record.correct("price", "cheap")
    record.undo("stock")
    assert (record["stock"].value, record["stock"].corrected) == ("12", False)
    asked = model.asked
    again = offers.reload(load)
    assert (again.status, again.rows, model.asked) == ("completed", 3, asked)
    rows = {row["item"]: row for row in offers.rows()}
    assert len(rows) == 3
    assert (rows["Bolt M8"]["price"], rows["Bolt M8"]["unit/size ?"], rows["Bolt M8"]["stock"]) == (1.5, "box", 12)
    kept = next(one for one in offers.records(again) if one.row == 2)
    assert (float(kept["price"].value or 0), kept["price"].corrected, kept["price"].pending) == (1.5, True, False)
    with pytest.raises(quern.QuernError):
        offers.reload(load)  # its rows were replaced


def test_a_draft_and_a_sample(mine: quern.Namespace, model: Model, tmp_path: Path) -> None:
    (tmp_path / "tried.txt").write_text(PAGES)
    drafted = mine.draft_definition(tmp_path / "tried.txt", "tried")
    assert drafted["dataDescription"] == "One offer"
    assert drafted["schemaDefinition"] == {"item": "the item", "price": "the price", "stock": "the stock"}
    assert drafted["quotes"]["item"] == "Bolt M6"
    assert "tried" not in [one["name"] for one in mine.datasets()]

    offers = mine.create_dataset("tried", drafted["dataDescription"], drafted["schemaDefinition"])
    asked = model.asked
    tried = mine.upload(tmp_path / "tried.txt", "tried", options={"extract": "model"}, dry_run=True, sample=1)
    assert (tried.rows, model.asked) == (0, asked + 1) and "read 1 of 1 parts" in str(tried)
    (record,) = offers.records(tried, flagged=True)
    assert (record.row, record.doubted[0].said) == (None, "1.80 EUR")
    record.correct("price", "1.50")
    load = mine.upload(tmp_path / "tried.txt", "tried", options={"extract": "model"})
    assert (load.rows, model.asked, list(offers.records(load, flagged=True))) == (3, asked + 1, [])
    with pytest.raises(quern.ValidationFailed):
        mine.upload(tmp_path / "tried.txt", "tried", sample=1)


def test_others_cannot_correct(mine: quern.Namespace, modelled: Service, tmp_path: Path) -> None:
    offers, load = loaded(mine, "refused", tmp_path)
    with quern.connect(modelled.url, modelled.token("bob")) as bob:
        theirs = bob.namespace("ada/shop")["refused"]
        with pytest.raises(quern.NotFound):
            list(theirs.records(load))
        offers.share("bob")
        record = next(theirs.records(load))
        for refused in (lambda: record.correct("item", "Nut"), lambda: record.undo("item"), lambda: theirs.reload(load)):
            with pytest.raises(quern.Forbidden):
                refused()
        with pytest.raises(ValueError, match="Only the owner"):
            bob.namespace("ada/shop").create_dataset("other")


def test_records_in_asyncio(modelled: Service, tmp_path: Path) -> None:
    async def use() -> None:
        async with quern.AsyncClient(modelled.url, modelled.token("ada")) as q:
            shop = await q.namespace("shop")
            offers = await shop.create_dataset("later", "One row for each offer", SCHEMA)
            (tmp_path / "later.txt").write_text(PAGES)
            load = await shop.upload(tmp_path / "later.txt", "later", options={"extract": "model"})
            (record,) = [one async for one in offers.records(load, flagged=True)]
            place = await record["price"].context(3)
            assert place and place.before.endswith("🔩 ") and list(await record.text()) == [1]
            await record.correct("price", 1.5)
            await record.undo("price")
            await record.correct("price", 1.5)
            assert (await offers.reload(load)).rows == 3

    asyncio.run(use())


def test_values_of_corrections() -> None:
    given = ["x", None, True, 12, 1.5, Decimal("1E+2"), datetime.date(2026, 3, 4), datetime.datetime(2026, 3, 4, 8)]
    assert [plain_text(one) for one in given] == ["x", None, "true", "12", "1.5", "100", "2026-03-04", "2026-03-04T08:00:00"]
    for wrong in (float("nan"), [1], Decimal("Infinity"), b"x"):
        with pytest.raises(TypeError):
            plain_text(wrong)
