"""Values keep their type, in whichever form rows arrive or leave."""

from __future__ import annotations

import datetime
import importlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pandas
import polars
import pyarrow
import pytest
from service import Service

import quern

KINDS = """SELECT range AS n, range::HUGEINT AS huge, sum(range) OVER () AS total, (range / 8)::DECIMAL(12, 3) AS price,
    9007199254740993 + range AS large, 12345678901234567890.25::DECIMAL(30, 2) AS long, DATE '2026-01-31' AS day,
    TIMESTAMP '2026-01-31 10:00:00.123456' AS moment, TIMESTAMPTZ '2026-01-31 10:00:00+02' AS instant, TIME '10:11:12.5' AS clock,
    range / 3 AS share, (range / 7)::FLOAT AS small, 'NaN'::DOUBLE AS none, range % 2 = 0 AS even, 'é' AS word, NULL AS nothing,
    'x'::BLOB AS bytes, [DATE '2026-01-31', NULL] AS days, MAP {'k': range} AS map, INTERVAL 3 DAY AS span,
    '0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70'::UUID AS id, '{"a":1.5,"b":[]}'::JSON AS json, 18446744073709551615::UBIGINT AS natural,
    340282366920938463463374607431768211455::UHUGEINT AS vast
    FROM range(3) ORDER BY n"""


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    """Make packages look as if they were not installed."""
    real, found = importlib.import_module, importlib.util.find_spec

    def import_module(name: str, package: str | None = None) -> Any:
        if name.partition(".")[0] in absent:
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else found(name))


def comparable(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[type, str]]]:
    def text(value: Any) -> str:  # the name of the zone may differ
        return str(value.timestamp() if isinstance(value, datetime.datetime) and value.tzinfo else value)

    return [{name: (type(value), text(value)) for name, value in row.items()} for row in rows]


def test_rows_are_the_same_with_and_without_packages(shop: quern.Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    with_arrow = shop.sql(KINDS).rows()
    assert with_arrow[1]["day"] == datetime.date(2026, 1, 31)
    assert with_arrow[1]["price"] == Decimal("0.125")
    assert (with_arrow[1]["huge"], with_arrow[1]["total"], type(with_arrow[1]["total"])) == (1, 3, int)
    assert with_arrow[1]["instant"] == datetime.datetime(2026, 1, 31, 8, tzinfo=datetime.UTC)
    without(monkeypatch, "pyarrow")
    with_polars = shop.sql(KINDS).rows()
    without(monkeypatch, "pyarrow", "polars")
    assert comparable(shop.sql(KINDS).rows()) == comparable(with_arrow)
    for row, other in zip(comparable(with_polars), comparable(with_arrow), strict=True):
        special = {"map", "id"}  # polars has no types for them
        assert {name: row[name] for name in row.keys() - special} == {name: other[name] for name in other.keys() - special}


def test_rows_of_datasets_and_steps_have_types(shop: quern.Namespace) -> None:
    day, price = datetime.date(2026, 3, 1), Decimal("12.50")
    prices = pyarrow.array([price, None], pyarrow.decimal128(10, 2))
    shop.upload(pyarrow.table({"item": ["a", "b"], "day": [day, day], "price": prices}), "priced_items")
    expected = [{"item": "a", "day": day, "price": price}, {"item": "b", "day": day, "price": None}]
    dataset = shop["priced_items"]
    assert comparable(dataset.rows()) == comparable(shop.sql("FROM priced_items").rows()) == comparable(expected)
    assert comparable(dataset.rows(limit=1)) == comparable(expected[:1])
    assert comparable(dataset.delete_rows("true", dry_run=True).first_rows) == comparable(expected)


def test_rows_of_steps_have_types(scripted: Service) -> None:
    with quern.connect(scripted.url, scripted.token("ada")) as q:
        shop = q.namespace("kinds")
        shop.create()
        kinds = KINDS.replace("MAP {'k': range} AS map,", "")
        answer = shop.ask(json.dumps({"steps": [{"instruction": "read", "queries": [kinds]}], "response": "1"}))
        (step,), again = answer.steps, shop.sql(kinds)
        assert comparable(step.rows()) == comparable(step.first_rows) == comparable(again.rows())
        assert step.df().dtypes.tolist() == again.df().dtypes.tolist()
        assert step.pl().schema == again.pl().schema
        assert step.arrow().schema.types == again.arrow().schema.types
        assert "<table>" in answer._repr_html_()


def test_sums_of_integers_are_numbers(shop: quern.Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shop.sql("SELECT region, sum(order_id) AS m FROM orders GROUP BY region ORDER BY region")
    df = result.df()
    assert df.dtypes["m"] == pandas.ArrowDtype(pyarrow.int64())
    assert (df.m / df.m.sum()).sum() == pytest.approx(1)
    assert df.m.mean() == 125125 and "m" in df.describe()
    assert result.pl()["m"].dtype == polars.Int64
    assert result.arrow().schema.field("m").type == pyarrow.int64()
    total = shop.sql("SELECT sum(order_id) FROM orders").scalar()
    assert json.dumps(total) == "500500"
    assert shop.sql("SELECT sum(order_id) AS m FROM orders WHERE false").rows() == [{"m": None}]
    # Larger values keep all their digits. Batches have one type, because a later value may be larger.
    large = shop.sql("SELECT sum(9223372036854775807) AS m FROM orders")
    assert large.scalar() == 9223372036854775807 * 1000
    assert large.df().m[0] == Decimal(9223372036854775807 * 1000)
    assert large.pl()["m"].dtype == polars.Decimal(38, 0)
    assert [batch.schema.types for batch in result.batches()] == [[pyarrow.string(), pyarrow.decimal128(38, 0)]]
    without(monkeypatch, "pyarrow")
    assert shop.sql("SELECT sum(9223372036854775807) AS m FROM orders").scalar() == 9223372036854775807 * 1000


def test_a_missing_package_is_named(shop: quern.Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    result, step = shop.sql("SELECT 1 AS n"), shop.ask("How many orders are there?").steps[0]
    for absent, calls in {
        "pandas": [result.df, step.df],
        "polars": [result.pl, step.pl],
        "pyarrow": [result.arrow, step.arrow],
    }.items():
        with monkeypatch.context() as patch:
            without(patch, absent)
            for call in calls:
                with pytest.raises(quern.MissingExtra, match=rf"needs the package {absent}.*clients/python\[") as missing:
                    call()
                assert "quern[" not in str(missing.value)
    with monkeypatch.context() as patch:
        without(patch, "pandas", "polars", "pyarrow")
        with pytest.raises(quern.MissingExtra, match=r"clients/python\[polars\]"):
            shop.sql("SELECT 1").pl()


def test_the_index_of_pandas(shop: quern.Namespace) -> None:
    frame = pandas.DataFrame({"region": ["n", "s", "n"], "kind": ["a", "b", "b"], "u": [1, 2, 3]})
    shop.upload(frame.groupby("region").sum(numeric_only=True), "by_region")
    assert shop["by_region"].rows() == [{"region": "n", "u": 4}, {"region": "s", "u": 2}]
    assert shop["by_region"].merge(pandas.DataFrame({"u": [9]}, index=pandas.Index(["s"], name="region")), "region").rows == 1
    assert shop["by_region"].append(frame[frame.u > 1][["region", "u"]]) == 2  # row numbers are no column
    assert shop["by_region"].columns() == {"region": "varchar", "u": "bigint"}
    shop.upload(frame.groupby(["region", "kind"]).u.sum(), "by_both")  # a Series
    assert shop["by_both"].columns() == {"region": "varchar", "kind": "varchar", "u": "bigint"}
    shop.upload(frame.describe(), "described")
    assert shop["described"].columns() == {"index": "varchar", "u": "double"}
    shop.upload(frame.groupby("region").agg({"u": ["min", "max"]}), "ranges")
    assert shop["ranges"].columns() == {"region": "varchar", "u_min": "bigint", "u_max": "bigint"}
    with pytest.raises(ValueError, match="has the name of a column"):
        shop.upload(frame.set_index("region", drop=False), "twice")
    assert list(frame.columns) == ["region", "kind", "u"]
