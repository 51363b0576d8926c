"""The surface against a real service."""

from __future__ import annotations

import asyncio
import datetime
import json
import random
import string
import time
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from service import Service

import quern


def test_connect_needs_a_sign_in(own_home: Path) -> None:
    with pytest.raises(quern.NotSignedIn, match="quern login"):
        quern.connect()
    with pytest.raises(quern.NotSignedIn, match="not signed in at https://quern"):
        quern.connect("quern.example.org")


def test_connect_from_the_environment(service: Service, ada_token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERN_SERVER", service.url + "/api/v1/")
    monkeypatch.setenv("QUERN_TOKEN", ada_token + "\n")
    with quern.connect() as q:
        assert q.me()["username"] == "ada"
        assert ada_token not in repr(q) + repr(vars(q))


def test_connect_with_the_sign_in_of_the_command_line(service: Service, ada_token: str, own_home: Path) -> None:
    entry = {"accessToken": ada_token, "expiresAt": "2999-01-01T00:00:00.123456789Z"}
    own_home.mkdir()
    (own_home / "credentials.json").write_text(json.dumps({"current": service.url, "servers": {service.url: entry}}))
    with quern.connect() as q:
        assert q.me()["username"] == "ada"


def test_faults_are_classes(shop: quern.Namespace, service: Service) -> None:
    with pytest.raises(quern.QueryInvalid) as fault:
        shop.sql("SELECT regoin FROM orders")
    assert fault.value.candidates == ["region"]
    assert fault.value.position == (1, 8)
    assert fault.value.request_id
    with pytest.raises(quern.NotFound):
        shop["absent"].info()
    with pytest.raises(quern.Unauthorized), quern.connect(service.url, "wrong") as stranger:
        stranger.me()
    with pytest.raises(quern.ConnectionFailed), quern.connect("http://127.0.0.1:1", "token") as nobody:
        nobody.me()


def test_sql_in_every_form(shop: quern.Namespace) -> None:
    result = shop.sql("SELECT region, count(*) AS n, sum(total) AS total FROM orders GROUP BY region ORDER BY region")
    expected = shop.sql("SELECT sum(total) FROM orders WHERE region = 'east'").scalar()
    assert [row["region"] for row in result.rows()] == ["east", "north", "south", "west"]
    assert result.rows()[0] == {"region": "east", "n": 250, "total": expected}
    assert result.df()["n"].sum() == 1000
    assert isinstance(result.df(), pandas.DataFrame)
    assert result.pl()["n"].to_list() == [250] * 4
    assert result.arrow().schema.names == ["region", "n", "total"]
    assert sum(batch.num_rows for batch in result.batches()) == len(result) == 4
    assert polars.DataFrame(result).shape == (4, 3)
    assert duckdb.sql("SELECT sum(n) FROM result").fetchall() == [(1000,)]
    assert result.versions[0].dataset == "ada/shop/orders"
    assert not result.truncated
    assert "<table>" in result._repr_html_()


def test_sql_parameters(shop: quern.Namespace) -> None:
    since = datetime.date(2026, 6, 1)
    by_name = shop.sql(
        "SELECT count(*) FROM orders WHERE region = $region AND day >= $since",
        {"region": "north", "since": {"type": "date", "value": since}},
    )
    by_place = shop.sql("SELECT count(*) FROM orders WHERE region = $1", ["x' OR true --"])
    assert 0 < by_name.scalar() < 250
    assert by_place.scalar() == 0


def test_results_of_any_size(shop: quern.Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    every = "SELECT a.order_id * 1000 + b.order_id AS n FROM orders a, orders b ORDER BY n"
    result = shop.sql(every)
    assert len(result) == 1_000_000
    assert result.arrow()["n"].to_pylist() == [a * 1000 + b for a in range(1, 1001) for b in range(1, 1001)]
    assert sum(batch.num_rows for batch in result.batches()) == 1_000_000
    assert result.pl()["n"].is_sorted()
    with pytest.warns(quern.TruncatedWarning):
        assert len(shop.sql(every, truncate=True)) == 10_000
    with pytest.raises(quern.QueryInvalid):
        shop.sql("SELECT nothing FROM orders a, orders b")
    monkeypatch.setattr("quern._tables.installed", lambda name: False)
    rows = shop.sql("SELECT a.order_id FROM orders a, (FROM orders LIMIT 11) b").rows()
    assert len(rows) == 11_000


def test_types_of_large_results(shop: quern.Namespace) -> None:
    """A result in pieces has the types and the values of a small one."""
    columns = """range AS n, (range % 100)::TINYINT AS tiny, range::HUGEINT AS huge, range::UBIGINT AS natural, range / 3 AS share,
        (range / 7)::FLOAT AS small, (range / 8)::DECIMAL(12, 3) AS price, DATE '2026-01-31' + (range % 99)::INTEGER AS day,
        TIMESTAMP '2026-01-31 10:00:00.123456' AS moment, TIMESTAMPTZ '2026-01-31 10:00:00+02' AS instant, TIME '10:11:12.5' AS clock,
        range % 2 = 0 AS even, 'é' || range AS word, NULL AS nothing, 'x'::BLOB AS bytes, [range, NULL] AS list,
        {'a': range, 'b': 'x'} AS struct, MAP {'k': range} AS map, '{"a": 1}'::JSON AS json,
        '0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70'::UUID AS id, INTERVAL 3 DAY AS span"""
    few, many = (shop.sql(f"SELECT {columns} FROM range({rows}) ORDER BY n") for rows in (100, 20_000))
    assert "pieces" in repr(vars(many)) and len(many) == 20_000
    assert many.arrow().schema.types == few.arrow().schema.types
    assert many.arrow().slice(0, 100).to_pylist() == few.arrow().to_pylist()
    assert many.pl().schema == few.pl().schema
    assert many.pl().head(100).rows() == few.pl().rows()
    assert many.df().dtypes.equals(few.df().dtypes)
    assert next(iter(many.batches())).schema.types == next(iter(few.batches())).schema.types


def test_rows_without_optional_packages(shop: quern.Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quern._tables.installed", lambda name: False)
    assert shop.sql("SELECT count(*) AS n FROM orders").rows() == [{"n": 1000}]


def test_ask(shop: quern.Namespace, q: quern.Client) -> None:
    answer = shop.ask("What is the total by region?")
    assert answer.ok and answer.outcome == "answer"
    assert answer.steps[0].row_count == 4
    assert answer.steps[0].df().shape[0] == 4
    assert answer.query and "orders" in answer.query
    assert answer.reading and answer.explained
    assert answer.versions[0].committed_at is not None
    page = answer._repr_html_()
    assert "<svg" in page and "<script" not in page
    answer.rate(True, "helpful")
    assert q.answer(answer.id).raw["feedback"]["comment"] == "helpful"
    answer.withdraw_rating()
    assert "feedback" not in q.answer(answer.id).raw
    later = answer.follow_up("And only in north?")
    assert later.conversation_id == answer.conversation_id
    checked = q.check("There are 1,000 orders, and 17 managers.", answers=[shop.ask("How many orders are there?")])
    assert [claim.verified for claim in checked.claims] == [True, False]


def test_verified(shop: quern.Namespace) -> None:
    kept = shop.ask("How many orders are there?").verify()
    assert shop.ask("How many orders are there?").verified is not None
    assert kept["id"] in [one["id"] for one in shop.verified()]
    shop.retire(kept["id"])
    assert shop.ask("How many orders are there?").verified is None


def test_stream(shop: quern.Namespace) -> None:
    events = list(shop.ask_stream("How many orders are there?"))
    assert events[0].type == "runStarted"
    assert events[-1].type == "runCompleted"
    assert [int(event.id) for event in events] == sorted(int(event.id) for event in events)


def test_stream_goes_on_after_the_server_was_killed(scripted: Service) -> None:
    with quern.connect(scripted.url, scripted.token("ada")) as q:
        shop = q.namespace("killed")
        shop.create()
        shop.upload(pandas.DataFrame({"n": [1, 2]}), "numbers")
        steps = [{"instruction": "read", "queries": ["FROM numbers"]}] * 4
        stream = shop.ask_stream(json.dumps({"steps": steps, "pause": 500, "response": "2"}))
        seen: list[str] = []
        for event in stream:
            seen.append(event.id)
            if event.type == "step" and event.data["index"] == 0:
                scripted.kill()
                time.sleep(0.5)
                scripted.start()
        assert len(seen) == len(set(seen))
        assert event.type == "runCompleted"
        assert stream.answer().response == "2"


def test_clarification(scripted: Service) -> None:
    with quern.connect(scripted.url, scripted.token("ada")) as q:
        shop = q.namespace("choices")
        shop.create()
        options = [{"number": 1, "interpretation": "this"}, {"number": 2, "interpretation": "that"}]
        asked = shop.ask(
            json.dumps(
                {
                    "outcome": "clarification",
                    "clarification": {"question": "Which?", "options": options},
                    "then": {"response": "You chose <chosen>."},
                }
            )
        )
        assert asked.clarification is not None
        assert str(asked) == "Which?\n  1. this\n  2. that"
        assert asked.choose(asked.clarification.options[1]).response == "You chose that."
        with pytest.raises(quern.RunFailed, match="did not answer"):
            shop.ask(json.dumps({"fail": True}))


def test_dataset(shop: quern.Namespace, q: quern.Client, service: Service, tmp_path: Path) -> None:
    load = shop.upload(pyarrow.table({"a": [1, 2, 3], "b": ["x", None, "z"]}), "things")
    assert (load.status, load.rows, load.rows_set_aside) == ("completed", 3, 0)
    things = shop["things"]
    assert things.columns() == {"a": "bigint", "b": "varchar"}
    assert things.append([{"a": 4, "b": "w"}]) == 1
    assert [row["a"] for row in things.rows()] == [1, 2, 3, 4]
    assert len(things.rows(limit=2)) == 2
    for name in ("things.parquet", "things.csv", "things.arrow"):
        assert things.export(tmp_path / name).stat().st_size > 0
    assert pyarrow.parquet.read_table(tmp_path / "things.parquet").num_rows == 4
    versions = things.versions()
    things.clear()
    things.restore(versions[-1]["snapshotId"])
    assert len(things.rows()) == 3
    things.define(description="Things of all kinds")
    assert things.definition()["dataDescription"] == "Things of all kinds"
    assert things.semantics()["columns"]
    assert things.profile()["rowCount"] == 3
    assert "things" in [one["name"] for one in shop.datasets()]
    assert "things" in [one["name"] for one in q.search("things")]
    things.share("bob")
    with quern.connect(service.url, service.token("bob")) as bob:
        assert bob.namespace("ada/shop").sql("SELECT count(*) FROM things").scalar() == 3
        things.unshare("bob")
        with pytest.raises(quern.NotFound):
            bob.namespace("ada/shop").sql("SELECT count(*) FROM things")
    other = things.rename("other_things")
    other.delete()
    with pytest.raises(quern.NotFound):
        other.info()


def test_doubts_stop_a_load(shop: quern.Namespace, orders_csv: Path) -> None:
    with pytest.raises(quern.DoubtsWaiting, match="accept=") as waiting:
        shop.upload(orders_csv, "orders")
    assert waiting.value.doubts[0]["code"]
    assert shop.sql("SELECT count(*) FROM orders").scalar() == 1000


def test_dry_run(shop: quern.Namespace, orders_csv: Path) -> None:
    load = shop.upload(orders_csv, "dry", dry_run=True)
    assert load.preview is not None
    assert [column["name"] for column in load.preview["columns"]] == ["order_id", "region", "day", "total"]
    with pytest.raises(quern.NotFound):
        shop["dry"].info()


def test_a_load_says_what_was_noticed(shop: quern.Namespace, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("No.;Price\n" + "".join(f"{n};{n},50\n" for n in range(50)) + "Total;n/a\n")
    text = str(shop.upload(path, "visits"))
    assert text.startswith("51 rows, 0 set aside\n")
    assert "No.: The column is text because of 1 of 51 values" in text and "(option types)" in text
    load = shop.upload(path, "visits", mode="replace", options={"types": {"No.": "bigint"}, "nullValues": ["n/a"]}, accept="all")
    assert (load.rows, load.rows_set_aside) == (50, 1)
    assert shop["visits"].columns() == {"No.": "bigint", "Price": "double"}


def test_hostile_text_is_shown_as_text(scripted: Service) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"& 17"
    with quern.connect(scripted.url, scripted.token("ada")) as q:
        shop = q.namespace("hostile")
        shop.create()
        shop.upload(pandas.DataFrame({hostile[:40]: [hostile, "b" * 100_000], "n": [1, 2]}), "bad")
        script = {"steps": [{"instruction": "read", "queries": ["FROM bad"]}], "response": hostile, "interpretation": hostile}
        page = shop.ask(json.dumps(script))._repr_html_() + shop.sql("FROM bad")._repr_html_()
        assert "<script" not in page and "<img" not in page
        assert "&lt;script&gt;" in page
        assert len(page) < 50_000


def test_async(service: Service, ada_token: str, shop: quern.Namespace, tmp_path: Path) -> None:
    async def use() -> None:
        async with quern.AsyncClient(service.url, ada_token) as q:
            mine = await q.namespace("shop")
            results = await asyncio.gather(*(mine.sql("SELECT count(*) AS n FROM orders") for _ in range(8)))
            assert [await result.scalar() for result in results] == [1000] * 8
            assert (await (await mine.sql("FROM orders")).df()).shape == (1000, 4)
            answer = await mine.ask("How many orders are there?")
            assert "1,000" in answer.response or "1000" in answer.response
            events = [event.type async for event in mine.ask_stream("How many orders are there?")]
            assert events[-1] == "runCompleted"
            frame = polars.DataFrame({"k": list(range(1000))})
            assert (await mine.upload(frame, "async_frame")).rows == 1000
            await mine["async_frame"].export(tmp_path / "k.parquet")
            assert polars.read_parquet(tmp_path / "k.parquet")["k"].sum() == 499500

    asyncio.run(use())


def test_folder_and_pattern(shop: quern.Namespace, tmp_path: Path) -> None:
    for month in range(1, 4):
        (tmp_path / f"m{month}.csv").write_text(f"month,n\n{month},{month * 10}\n")
    (tmp_path / ".hidden.csv").write_text("month,n\n9,9\n")
    assert shop.upload(tmp_path, "months").rows == 3
    assert shop.upload(str(tmp_path / "m[12].csv"), "months", accept="all").rows == 2


def test_unknown_names_and_long_values(shop: quern.Namespace) -> None:
    text = "".join(random.Random(1).choices(string.printable, k=1000))
    with pytest.raises(quern.QuernError):
        shop.sql(text)
