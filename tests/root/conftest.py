"""What the tests that need root share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.simulator import Simulator, unavailable
from tests.simulator.starting import Simulate


@pytest.fixture
def simulate(tmp_path: Path) -> Iterator[Simulate]:
    """Start a simulator of power sensors at tmp_path/sys; see tests/simulator/README.md."""
    if (why := unavailable()) is not None:
        pytest.skip(why)
    with ExitStack() as stack:

        def start(write: Callable[[Path], Path], **settings: object) -> Simulator:
            write(tmp_path / "tree")
            return stack.enter_context(Simulator(tmp_path / "tree", tmp_path / "sys", **settings))

        yield start
