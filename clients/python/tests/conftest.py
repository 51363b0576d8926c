from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from model import Model
from service import Service

import quern


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("service"), "rules")
    yield running
    running.close()


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose questions are scripts, so that a run is as slow as the test wants."""
    running = Service(tmp_path_factory.mktemp("scripted"), "scripted", QUERN_TEST_SCRIPTED="true")
    yield running
    running.close()


@pytest.fixture(scope="session")
def model() -> Iterator[Model]:
    with Model() as running:
        yield running


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Service]:
    """A service whose language model is in the tests."""
    running = Service(
        tmp_path_factory.mktemp("modelled"),
        "modelled",
        QUERN_MODELS="rows/scripted",
        QUERN_MODEL_ROWS_KIND="openai",
        QUERN_MODEL_ROWS_LOCAL="true",
        QUERN_MODEL_ROWS_URL=model.url,
    )
    yield running
    running.close()


@pytest.fixture(scope="session")
def ada_token(service: Service) -> str:
    return service.token("ada")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State of uploads and credentials of the machine must not reach the tests."""
    home = tmp_path / "home"
    monkeypatch.setenv("QUERN_HOME", str(home))
    for name in ("QUERN_TOKEN", "QUERN_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def q(service: Service, ada_token: str) -> Iterator[quern.Client]:
    with quern.connect(service.url, ada_token) as client:
        yield client


@pytest.fixture(scope="session")
def orders_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,000 orders. Those of the region north are the most expensive ones."""
    path = tmp_path_factory.mktemp("data") / "orders.csv"
    chance = random.Random(7)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["order_id", "region", "day", "total"])
        for number in range(1, 1001):
            region = ("north", "south", "east", "west")[number % 4]
            total = chance.randint(100, 200) * (3 if region == "north" else 1)
            table.writerow([number, region, f"2026-{1 + number % 12:02}-{1 + number % 28:02}", f"{total}.50"])
    return path


@pytest.fixture(scope="session")
def shop(service: Service, ada_token: str, orders_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> quern.Namespace:
    shop = quern.connect(service.url, ada_token).namespace("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUERN_HOME", str(tmp_path_factory.mktemp("home")))
        shop.upload(orders_csv, "orders")
    return shop
