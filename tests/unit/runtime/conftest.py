"""A driver over three models, on a clock that tests set."""

import pytest

from jetsel.runtime import Driver, ModelQueue
from tests.unit.runtime.driving import ODD, Clock, TableEngine


@pytest.fixture
def engines() -> dict[str, TableEngine]:
    return {"s": TableEngine("s", 0.1), "m": TableEngine("m", float(ODD)), "l": TableEngine("l", 5.0)}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(engines: dict[str, TableEngine], clock: Clock) -> Driver:
    return Driver({name: ModelQueue(name, engine) for name, engine in engines.items()}, max_batch=3, now=clock)
