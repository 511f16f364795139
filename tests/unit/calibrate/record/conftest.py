"""Models that are loaded once for all tests of recording."""

from collections.abc import Iterator

import pytest

from jetsel.calibrate.record.recorder import loaded_models
from jetsel.engines import Engine
from tests.unit.calibrate.record.making import family


@pytest.fixture(scope="session")
def engines() -> Iterator[dict[str, Engine]]:
    with loaded_models(family("xs", "s")) as loaded:
        yield loaded
