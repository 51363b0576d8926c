"""Rows that change, and the events that tell of it."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pandas
import polars
import pyarrow
import pytest
from service import Service
from test_breaks import Proxy, proxy  # noqa: F401

import quern

STOCK = [{"sku": "nut", "shelf": "A1", "n": 40}, {"sku": "bolt", "shelf": "A1", "n": 12}, {"sku": "gear", "shelf": None, "n": 7}]


def counts(dataset: quern.Dataset) -> dict[str, int]:
    rows = dataset.rows()
    found = {row["sku"]: row["n"] for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found


@pytest.mark.parametrize("table", [list, pandas.DataFrame, polars.DataFrame, pyarrow.Table.from_pylist])
def test_merge(table: Callable[[Any], Any], shop: quern.Namespace) -> None:
    stock = shop[f"stock_{table.__module__.split('.')[0]}_{table.__name__}".lower()]
    shop.upload(pyarrow.Table.from_pylist(STOCK), stock.name)
    news = table([{"sku": "nut", "n": 38}, {"sku": "pin", "n": 5}])
    dry = stock.merge(news, "sku", dry_run=True)
    assert dry == quern.Merged(rows=2, replaced=1, snapshot_id=None, dry_run=True)
    assert counts(stock) == {"nut": 40, "bolt": 12, "gear": 7}
    done = stock.merge(news, key=["sku"])
    assert (done.rows, done.dry_run, done.snapshot_id) == (2, False, stock.versions()[0]["snapshotId"])
    assert counts(stock) == {"nut": 38, "bolt": 12, "gear": 7, "pin": 5}
    assert [row["shelf"] for row in stock.rows() if row["sku"] == "nut"] == [None]
    assert stock.append(table([{"sku": "cog", "shelf": "B2", "n": 1}])) == 1
    assert stock.merge({"sku": "cog", "shelf": "B2", "n": 2}, "sku").rows == 1
    assert stock.merge(shop.sql(f"SELECT sku, shelf, n + 1 AS n FROM {stock.name} WHERE sku = 'cog'"), "sku").rows == 1
    assert counts(stock)["cog"] == 3


def test_merge_of_files(shop: quern.Namespace, tmp_path: Path) -> None:
    shop.upload(pandas.DataFrame(STOCK), "stock_files")
    (tmp_path / "monday.csv").write_text("sku,shelf,n\nnut,C3,1\npin,C3,2\n")
    (tmp_path / "tuesday.csv").write_text("sku,shelf,n\npin,C3,9\ncog,C3,3\n")
    load = shop.upload([tmp_path / "monday.csv", tmp_path / "tuesday.csv"], "stock_files", mode="merge", key="sku")
    assert (load.rows, load.rows_set_aside) == (3, 1)  # a key that occurs again is set aside
    assert counts(shop["stock_files"]) == {"nut": 1, "bolt": 12, "gear": 7, "pin": 2, "cog": 3}
    shop.upload(polars.DataFrame({"sku": ["nut"], "shelf": ["D4"], "n": [77]}), "stock_files", mode="merge", key=["sku", "shelf"])
    assert len(shop["stock_files"].rows()) == 6


def test_merge_is_refused(shop: quern.Namespace, service: Service) -> None:
    shop.upload(pandas.DataFrame(STOCK), "stock_refused")
    stock = shop["stock_refused"]
    with pytest.raises(quern.ValidationFailed):
        stock.merge(STOCK)  # the dataset has no key of its own
    with pytest.raises(quern.ValidationFailed):
        stock.merge(STOCK, "sku_of_the_shop")
    with pytest.raises(quern.ValidationFailed) as twice:
        stock.merge([STOCK[0], STOCK[0]], "sku")
    assert twice.value.details
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match=r"Use Namespace.upload"):
        patch.setattr("quern._sync._dataset._MOST_BYTES", 100)
        stock.merge(polars.DataFrame(STOCK), "sku")
    stock.share("bob")
    with quern.connect(service.url, service.token("bob")) as bob:
        theirs = bob.namespace("ada/shop")["stock_refused"]
        for refused in (lambda: theirs.merge(STOCK, "sku"), lambda: theirs.delete_rows("true")):
            with pytest.raises(quern.Forbidden):
                refused()
    assert counts(stock) == {"nut": 40, "bolt": 12, "gear": 7}


def test_delete_rows(shop: quern.Namespace) -> None:
    day = datetime.date(2026, 11, 1)
    moment = datetime.datetime(2026, 11, 1, 8, 30, 0, 250_000)
    frame = pyarrow.table(
        {
            "n": pyarrow.array(range(10), pyarrow.int64()),
            "day": [day + datetime.timedelta(number) for number in range(10)],
            "moment": [moment + datetime.timedelta(number) for number in range(10)],
            "price": pyarrow.array([Decimal(number) / 10 for number in range(10)], pyarrow.decimal128(10, 2)),
        }
    )
    shop.upload(frame, "priced")
    priced = shop["priced"]
    dry = priced.delete_rows("day >= $since", {"since": day + datetime.timedelta(4)}, dry_run=True)
    assert (dry.rows, dry.dry_run, dry.snapshot_id) == (6, True, None)
    assert [row["n"] for row in dry.first_rows] == [4, 5, 6, 7, 8, 9]
    assert "__metadata" not in dry.first_rows[0]
    # Every value keeps its type: an interval can be added to a date, not to a text.
    assert priced.delete_rows("day = $1 + INTERVAL 1 DAY", [day]).rows == 1
    assert priced.delete_rows("moment < ?", [moment.replace(tzinfo=datetime.UTC) + datetime.timedelta(microseconds=1)]).rows == 1
    assert priced.delete_rows("price = $1 / 1", [Decimal("0.20")]).rows == 1
    assert priced.delete_rows("price > $least AND n <> $n", {"least": Decimal("7E-1"), "n": 9}).rows == 1
    gone = priced.delete_rows("n IN (3, 4)")
    assert (gone.rows, gone.first_rows, gone.dry_run) == (2, (), False)
    assert [row["n"] for row in priced.rows()] == [5, 6, 7, 9]
    assert priced.delete_rows("n = 1000") == quern.Deleted(rows=0, first_rows=(), snapshot_id=None, dry_run=False)
    versions = priced.versions()
    assert gone.snapshot_id == versions[0]["snapshotId"]
    priced.restore(versions[1]["snapshotId"])
    assert len(priced.rows()) == 6
    with pytest.raises(quern.QueryInvalid) as fault:
        priced.delete_rows("pirce = 1")
    assert fault.value.candidates == ["price"]
    assert shop.sql("SELECT count(*) FROM priced WHERE day > $1 - INTERVAL 1 DAY", [datetime.date(2026, 11, 6)]).scalar() == 4


def test_a_lost_answer_changes_rows_once(shop: quern.Namespace, proxy: type[Proxy], ada_token: str) -> None:  # noqa: F811
    shop.upload(pandas.DataFrame(STOCK), "stock_lost")
    with quern.connect(proxy.address, ada_token) as q:  # type: ignore[attr-defined]
        stock = q.namespace("ada/shop")["stock_lost"]
        proxy.wanted[:] = ["pass", "lose", "refuse"]  # the columns are asked for first
        merged = stock.merge(pandas.DataFrame([{"sku": "pin", "shelf": "A1", "n": 5}]), "sku")
        proxy.wanted[:] = ["lose", "refuse"]
        deleted = stock.delete_rows("shelf = 'A1'")
        assert (merged.rows, deleted.rows) == (1, 3)  # the outcome of the first attempt, not that there was nothing left to do
        keys = [key for request, key in proxy.seen if request.startswith("POST")]
        assert len(set(keys[:3])) == len(set(keys[3:])) == 1 and len(keys) == 6
    assert counts(shop["stock_lost"]) == {"gear": 7}
    assert len(shop["stock_lost"].versions()) == 3


def take(events: quern.Events, number: int, dataset: str = "told") -> list[quern.Notice]:
    """Return the next events of a dataset. Those of other tests a moment ago may come before them."""
    found: list[quern.Notice] = []
    for notice in events:
        if notice.data["dataset"] == dataset:
            found.append(notice)
        if len(found) == number:
            break
    return found


def test_events(q: quern.Client, shop: quern.Namespace) -> None:
    all_of_it, loads = q.events(["dataset.loaded", "dataset.shared"]), shop.events("dataset.loaded")
    begin = all_of_it.position
    load = shop.upload(pandas.DataFrame(STOCK), "told")
    shares = shop["told"].events("dataset.shared")
    shop["told"].append(STOCK)
    shop["told"].share("bob")
    (first,) = take(loads, 1)
    assert (first.type, first.data["namespace"], first.data["rows"]) == ("dataset.loaded", "shop", 3)
    assert first.data["ingestionId"] == load.id and first.data["snapshotId"] == load.snapshot_id
    assert abs(first.timestamp - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=1)
    # An iteration that was left goes on where it was, and so does another program with the position.
    (second,) = take(loads, 1)
    assert second.data["rows"] == 3 and "ingestionId" not in second.data
    assert second.position == loads.position
    assert take(q.events("dataset.loaded", after=first.position), 1) == [second]
    assert [notice.type for notice in take(shares, 1)] == ["dataset.shared"]
    everything = take(all_of_it, 3)
    assert everything == take(q.events(["dataset.loaded", "dataset.shared"], after=begin), 3)
    assert [notice.type for notice in everything] == ["dataset.loaded", "dataset.loaded", "dataset.shared"]
    with pytest.raises(quern.ValidationFailed):
        q.events("dataset.exploded")
    with pytest.raises(quern.ValidationFailed):
        take(q.events(after="1"), 1)  # what happened since then is not kept


def test_events_go_on_after_the_server_was_killed(scripted: Service) -> None:
    with quern.connect(scripted.url, scripted.token("ada")) as q:
        shop = q.namespace("followed")
        shop.upload(pandas.DataFrame({"n": [0] * 9}), "numbers")
        begin = shop["numbers"].events()
        for number in range(1, 4):
            shop["numbers"].append([{"n": number}] * number)
        events = (notice for notice in begin if notice.data.get("rows") != 9)  # this load may still count as new
        seen: list[int] = []
        for notice in events:
            seen.append(notice.data["rows"])
            if seen == [1]:
                scripted.kill()
                scripted.start()
            if len(seen) == 3:
                shop["numbers"].append([{"n": 4}] * 4)
            if len(seen) == 4:
                break
        assert seen == [1, 2, 3, 4]


def test_events_end_with_the_right_to_see_them(scripted: Service) -> None:
    token = scripted.token("bob")
    with quern.connect(scripted.url, token) as q:
        events = q.events()
        api = scripted.url + "/api/v1/user/tokens"
        headers = {"Authorization": "Bearer " + token}
        (one,) = httpx2.get(api, headers=headers).raise_for_status().json()["data"]
        httpx2.delete(f"{api}/{one['id']}", headers=headers).raise_for_status()
        with pytest.raises(quern.Unauthorized):
            take(events, 1)
    with pytest.raises(quern.ConnectionFailed), quern.connect("http://127.0.0.1:9", token) as nobody:
        take(nobody.events(after="1", patience=0.5), 1)


def test_async(service: Service, ada_token: str) -> None:
    async def use() -> None:
        async with quern.AsyncClient(service.url, ada_token) as q:
            shop = await q.namespace("shop")
            await shop.upload(polars.DataFrame(STOCK), "stock_async")
            stock = shop["stock_async"]
            events = await stock.events()
            assert (await stock.merge([{"sku": "nut", "n": 1}], "sku", dry_run=True)).replaced == 1
            assert (await stock.merge(polars.DataFrame({"sku": ["nut"], "n": [1]}), "sku")).rows == 1
            assert (await stock.delete_rows("n < $1", [10])).rows == 2
            assert [row["sku"] for row in await stock.rows()] == ["bolt"]
            await stock.append([{"sku": "pin", "n": 2}])
            seen: list[tuple[str, str]] = []
            async for notice in events:
                seen.append((notice.type, notice.data.get("mode", "")))
                if notice.data.get("mode") == "append" and "ingestionId" not in notice.data:
                    break
            assert seen[-3:] == [("dataset.loaded", "merge"), ("dataset.rowsDeleted", ""), ("dataset.loaded", "append")]

    asyncio.run(use())
