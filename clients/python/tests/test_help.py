"""What people stumble over says what to do next."""

from __future__ import annotations

import datetime
import inspect
import pydoc
import warnings
from pathlib import Path

import numpy
import pandas
import polars
import pytest
from service import Service

import quern
from quern._errors import in_python

STOCK = [{"Beleg-Nr.": 1, "Ort": "A", "n": 40}, {"Beleg-Nr.": 2, "Ort": "B", "n": 12}]


def test_a_name_that_is_not_allowed(shop: quern.Namespace, q: quern.Client) -> None:
    for name in ("Mein Datensatz 2025", "größen", "", "-x", "a/b"):
        with pytest.raises(ValueError, match="letters a to z"):
            shop.upload(pandas.DataFrame({"a": [1]}), name)
    with pytest.raises(ValueError, match="name of a namespace"):
        q.namespace("my shop").upload(pandas.DataFrame({"a": [1]}), "a")
    with pytest.raises(ValueError, match="name of a namespace"):
        q.namespace("my shop").create()
    with pytest.raises(quern.NotFound, match=r"cannot be a name: .*letters a-z") as absent:
        shop["größen"].append({"a": 1})
    assert "Namespace.datasets() lists" in str(absent.value) and "GET /" not in str(absent.value)


def test_a_dry_run_says_what_was_noticed(shop: quern.Namespace, tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("Datum;Umsatz\n" + "".join(f"{1 + n % 28:02}.10.2026;{n},50\n" for n in range(50)) + "Summe;x\n")
    dry = shop.upload(path, "noticed", dry_run=True)
    real = shop.upload(path, "noticed")
    assert dry.doubts == real.doubts and len(dry.doubts) >= 2
    assert str(dry).startswith(
        "Dry run: nothing was loaded. The columns would be: Datum varchar, Umsatz varchar\n  - Datum: The column is text"
    )
    page = dry._repr_html_()
    assert "Datum: The column is text" in page and "<table>" in page and "01.10.2026" in page
    assert "51 rows, 0 set aside" in real._repr_html_()
    waiting = quern.DoubtsWaiting([{"code": "x", "column": "Datum", "message": "It is text.", "option": "types"}])
    assert str(waiting).endswith("\n  - Datum: It is text. (option types)")


def test_missing_values_in_dicts(shop: quern.Namespace) -> None:
    frame = pandas.DataFrame({"n": [1.5, None], "day": [pandas.Timestamp("2026-01-31"), None], "word": ["x", None]})
    shop.upload(frame, "gaps")
    assert shop["gaps"].append(frame.to_dict("records")) == 2
    assert shop["gaps"].append({"n": numpy.float64("nan"), "day": pandas.NaT, "word": pandas.NA}) == 1
    rows = shop["gaps"].rows()
    assert rows[:2] == rows[2:4]
    assert rows[1] == rows[4] == {"n": None, "day": None, "word": None}
    with pytest.raises(ValueError, match="Row 1, column 'n': rows in dicts cannot have inf"):
        shop["gaps"].append([{"n": 1.0}, {"n": float("inf")}])


def test_parameters_that_are_no_values(shop: quern.Namespace) -> None:
    with pytest.raises(TypeError, match=r"\$rs is a list.*IN \(\$rs_1, \$rs_2, \$rs_3\)"):
        shop.sql("SELECT count(*) FROM orders WHERE region IN $rs", {"rs": ["north", "south"]})
    with pytest.raises(TypeError, match=r"\$1 is a list.*IN \(\$1, \$2, \$3\)"):
        shop["orders"].delete_rows("region IN $1", [("north", "south")])
    for scalar in (5, "north"):
        with pytest.raises(TypeError, match=rf"write \[{scalar!r}\]"):
            shop.sql("SELECT $1", scalar)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\$x is nan.*IS NULL"):
        shop.sql("SELECT $x", {"x": float("nan")})
    with pytest.raises(ValueError, match=r"as_of is a moment.*committedAt"):
        shop.sql("SELECT 1", as_of=shop["orders"].versions()[0]["snapshotId"])
    regions = {f"region_{number}": name for number, name in enumerate(["north", "south"])}
    named = ", ".join("$" + name for name in regions)
    assert shop.sql(f"SELECT count(*) FROM orders WHERE region IN ({named})", regions).scalar() == 500


def test_a_table_that_cannot_be_sent(shop: quern.Namespace) -> None:
    with pytest.raises(ValueError, match=r"cannot be sent: .*column mixed.*astype\(str\)"):
        shop.upload(pandas.DataFrame({"mixed": [1, "x"]}), "mixed")


@pytest.mark.parametrize("table", [list, pandas.DataFrame, polars.DataFrame])
def test_columns_that_are_added_are_told(shop: quern.Namespace, table: type) -> None:
    shop.upload(pandas.DataFrame(STOCK), f"receipts_{table.__module__.partition('.')[0]}")
    receipts = shop[f"receipts_{table.__module__.partition('.')[0]}"]
    with pytest.warns(quern.ColumnsAddedWarning, match=r"were added: 'Beleg-Nr' \(did you mean 'Beleg-Nr\.'\?\)") as told:
        assert receipts.append(table([{"Beleg-Nr": 3, "Ort": "A"}])) == 1
    assert told[0].filename == __file__
    with pytest.warns(quern.ColumnsAddedWarning, match="would be added: 'colour'"):
        receipts.merge(table([{"Beleg-Nr.": 3, "colour": "red"}]), "Beleg-Nr.", dry_run=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        receipts.append(table([{"beleg-nr.": 4, "Ort": "C"}]))


def test_messages_speak_python(shop: quern.Namespace) -> None:
    with pytest.raises(quern.QueryInvalid, match=r"Dataset\.merge\(\) replaces rows\.") as fault:
        shop.sql("UPDATE orders SET region = 'x'")
    assert "POST" not in str(fault.value) and "quern rows" not in str(fault.value)
    refused = shop.ask("Why is the sky blue?")
    assert refused.outcome == "refused" and "SQL always works: `Namespace.sql()`." in str(refused)
    assert in_python("GET /query/runs lists your runs, and POST /query/ask begins one.") == (
        "Client.runs() lists your runs, and Namespace.ask() begins one."
    )
    with pytest.raises(quern.ConnectionFailed, match=r"at http://127.0.0.1:9 cannot be reached: .*Is it running.*QUERN_SERVER"):
        quern.connect("http://127.0.0.1:9", "token", retries=0).me()


def test_an_answer_in_a_terminal(shop: quern.Namespace) -> None:
    shop.upload(pandas.DataFrame({"town": [f"town {n % 12:02}" for n in range(60)], "n": range(60)}), "visitors")
    answer = shop.ask("How many visitors by town?")
    assert "listed in the table" in answer.response
    lines = str(answer).splitlines()
    assert lines[2].split() == [column.name for column in answer.steps[0].columns]
    assert lines[3].split() == ["town", "00", "5"] and len(lines) == 15


def test_key(shop: quern.Namespace) -> None:
    shop.upload(pandas.DataFrame(STOCK), "keyed")
    keyed = shop["keyed"]
    assert keyed.key() is None
    assert keyed.set_key("Beleg-Nr.") == {"columns": ["Beleg-Nr."], "duplicates": "setAside"} == keyed.key()
    assert keyed.append([{"Beleg-Nr.": 1, "Ort": "Z"}, {"Beleg-Nr.": 9, "Ort": "Z"}]) == 1
    assert keyed.merge([{"Beleg-Nr.": 1, "Ort": "Z"}]).rows == 1
    keyed.set_key(["Beleg-Nr."], "refuse")
    with pytest.raises(quern.Conflict):
        keyed.append({"Beleg-Nr.": 1})
    keyed.remove_key()
    assert keyed.key() is None
    keyed.append({"Beleg-Nr.": 1})
    with pytest.raises(quern.Conflict):
        keyed.set_key("Beleg-Nr.")


def test_follow_ups_are_about_the_last_question(q: quern.Client, orders_csv: Path) -> None:
    shop = q.namespace("followed")  # no other dataset has these words
    shop.upload(orders_csv, "orders")
    shop["orders"].profile()  # from then on the values are known
    answer = shop.ask("How many orders are there?")
    answer.follow_up("And in north?")
    assert answer.query is not None and "north" not in answer.query
    assert "north" in (answer.follow_up("by month").query or "")
    assert "north" not in (shop.ask("How many orders are there?").follow_up("by month").query or "")


def test_synonyms(shop: quern.Namespace) -> None:
    shop.upload(pandas.DataFrame(STOCK), "named")
    named = shop["named"]
    before = named.semantics()["columns"]
    after = named.add_synonyms("n", "pieces", "items")["columns"]
    assert after["n"]["synonyms"] == ["pieces", "items"] and after["n"]["role"] == before["n"]["role"]
    assert named.add_synonyms("n", "items", "things")["columns"]["n"]["synonyms"] == ["pieces", "items", "things"]
    assert after["Ort"] == before["Ort"]
    with pytest.raises(ValueError, match="no column 'm'"):
        named.add_synonyms("m", "x")


def test_verified_with_parameters(shop: quern.Namespace) -> None:
    shop["orders"].profile()  # from then on the values are known
    kept = shop.verify(
        "How many orders were in $region?",
        "SELECT count(*) AS n FROM orders WHERE region = $region",
        parameters=[{"name": "region", "type": "varchar", "column": "orders.region", "default": "north"}],
        interpretation="number of orders in $region",
    )
    assert kept["parameters"][0]["name"] == "region"
    answer = shop.ask("How many orders were in south?")
    assert answer.verified is not None and answer.steps[0].rows() == [{"n": 250}]
    shop.retire(kept["id"])


def test_choices_are_remembered_until_they_are_forgotten(shop: quern.Namespace) -> None:
    frame = pandas.DataFrame({"team": ["a", "b"], "planned_cost": [1, 2], "actual_cost": [3, 4]})
    shop.upload(frame, "budgets")
    question = "What is the total cost of budgets?"
    asked = shop.ask(question)
    assert asked.clarification is not None
    assert asked.choose(1).ok
    assert shop["budgets"].choices()["chosen"]
    assert shop.ask(question).clarification is None
    shop["budgets"].forget_choices()
    assert shop["budgets"].choices()["chosen"] == []
    assert shop.ask(question).clarification is not None


def test_results_show_themselves(shop: quern.Namespace, q: quern.Client, service: Service) -> None:
    shop.upload(pandas.DataFrame({"n": range(30), "text": ["<b>"] * 30}), "shown")
    dry = shop["shown"].delete_rows("n >= 5", dry_run=True)
    assert str(dry) == "Dry run: 25 rows would be deleted" and len(repr(dry)) < 100
    assert str(shop["shown"].delete_rows("n = 29")) == "Deleted 1 row"
    assert "The list is empty." in shop["shown"].shares()._repr_html_()
    assert "&lt;b&gt;" in dry._repr_html_() and "<b>" not in dry._repr_html_()
    assert str(shop["shown"].merge({"n": 1, "text": "x"}, "n", dry_run=True)) == "Dry run: 1 row would be merged, and take the place of 1"
    versions = shop["shown"].versions()
    assert "snapshotId" in versions._repr_html_()  # type: ignore[attr-defined]
    assert "<table>" in shop.datasets()._repr_html_()  # type: ignore[attr-defined]
    checked = q.check("There are <1,000> orders, and 17 managers.", answers=[shop.ask("How many orders are there?")])
    assert str(checked).startswith("1 of 2 figures confirmed\n  - 17")
    page = checked._repr_html_()
    assert "17</mark>" in page and "&lt;1,000&gt;" in page and "1 of 2 figures" in page
    shop["shown"].share("nobody.yet@example.org")
    assert shop["shown"].shares()[0]["pending"] is True
    assert datetime.datetime.fromisoformat(versions[0]["committedAt"]).tzinfo is not None


def test_help_lists_what_there_is() -> None:
    text = pydoc.render_doc(quern.Answer, renderer=pydoc.plaintext)
    for name in ("response", "reading", "steps", "clarification", "checks", "doubts", "versions"):
        assert f"``{name}``" in text
    assert "QUERN_TOKEN" in pydoc.render_doc(quern.connect, renderer=pydoc.plaintext)
    for name, member in inspect.getmembers(quern, inspect.isclass):
        assert member.__doc__, name
        for called, function in inspect.getmembers(member, inspect.isfunction):
            assert called.startswith("_") or function.__doc__ or member is quern.Events, f"{name}.{called}"
