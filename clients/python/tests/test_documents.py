"""The programs of the documentation run, and the surface and the types are those of the files that hold them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from service import Service

import quern

CLIENT = Path(__file__).parent.parent
EXAMPLES = CLIENT.parent.parent / "examples" / "python"


@pytest.mark.parametrize(("page", "person"), [("README.md", "eve"), ("../../docs/python.md", "bob")])
def test_programs_of_the_documentation(
    page: str, person: str, service: Service, orders_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUERN_SERVER", service.url)
    # Every page starts with an empty account.
    monkeypatch.setenv("QUERN_TOKEN", service.token(person))
    monkeypatch.chdir(tmp_path)
    if page == "README.md":
        shutil.copy(orders_csv, "orders.csv")
    names: dict[str, Any] = {}
    for program in programs_of(DOCUMENTS.sub("", (CLIENT / page).read_text())):
        program = program.replace('share("bob")', 'share("ada")')
        exec(compile(program, page, "exec"), names)


# This section of docs/python.md needs a service with a model.
DOCUMENTS = re.compile(r"^## Documents\n.*?(?=^## )", re.MULTILINE | re.DOTALL)


def programs_of(text: str) -> list[str]:
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert programs
    return programs


def test_programs_about_documents(
    modelled: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (section,) = DOCUMENTS.findall((CLIENT / "../../docs/python.md").read_text())
    with quern.connect(modelled.url, modelled.token("bob")) as q:
        names: dict[str, Any] = {"shop": q.namespace("shop")}
        for program in programs_of(section):
            exec(compile(program, "docs/python.md", "exec"), names)
        assert [float(row["price"]) for row in names["offers"].rows()] == [1.2, 1.5]
    printed = capsys.readouterr().out
    assert "offers.txt, page 1: Our prices\n[Bolt M6 costs 1.20 EUR, 40 in stock]\nBolt M8 costs 1.50" in printed
    assert "price valueNotInQuote 1.80 EUR" in printed


def test_surface() -> None:
    printed = subprocess.run([sys.executable, CLIENT / "tools" / "surface.py"], capture_output=True, text=True, check=True).stdout
    assert printed == (CLIENT / "tests" / "surface.txt").read_text(), "run: python tools/surface.py > tests/surface.txt"


def test_wheel(service: Service, ada_token: str, tmp_path: Path) -> None:
    """The wheel, made of the sdist, works in a fresh environment with nothing but what it names."""
    subprocess.run([sys.executable, "-m", "build", "-q", "--no-isolation", "--outdir", tmp_path, CLIENT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "fresh"], check=True)
    python = tmp_path / "fresh" / "bin" / "python"
    pip = [os.environ["PIP_PYTHON"], "-W", "ignore", "-m", "pip", "--python", python, "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel], check=True)
    program = "import quern, sys; print(quern.connect(sys.argv[1], sys.argv[2]).namespace('shop').sql('SELECT 41 + 1 AS n').rows())"
    printed = subprocess.run(
        [python, "-c", program, service.url, ada_token], capture_output=True, text=True, check=True, env={"PATH": ""}, cwd=tmp_path
    )
    assert printed.stdout == "[{'n': 42}]\n"
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == {".whl", ".gz"}


def example(service: Service, token: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"QUERN_SERVER": service.url, "QUERN_TOKEN": token}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=EXAMPLES)


def test_example_of_a_nightly_load(service: Service, ada_token: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    run = [EXAMPLES / "nightly_load.py", folder, "nightly", "days"]
    assert example(service, ada_token, *run).stdout == "no files tonight\n"
    (folder / "monday.csv").write_text("day,n\n2026-11-16,1\n2026-11-16,2\n")
    first = example(service, ada_token, *run)
    assert (first.returncode, first.stdout) == (0, "2 rows loaded, 0 set aside\n"), first.stderr
    again = example(service, ada_token, *run)
    assert again.returncode == 1 and "accept=" in again.stderr
    (folder / "monday.csv").write_text("day,n\nnot a day,1\nnot a day,2\n")
    other = example(service, ada_token, *run)
    assert other.returncode == 1 and "other columns" in other.stderr


def test_example_of_a_report(service: Service, ada_token: str, shop: quern.Namespace) -> None:
    done = example(service, ada_token, EXAMPLES / "report.py", "shop")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Orders by region, 4 regions:\n- north: ")


def test_example_notebook(service: Service, ada_token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERN_SERVER", service.url)
    monkeypatch.setenv("QUERN_TOKEN", ada_token)
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pages = [out["data"].get("text/html", "") for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert any("<svg" in page for page in pages)
    texts = [out["data"]["text/plain"] for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert texts[-1] == "[('98.50', True)]"
