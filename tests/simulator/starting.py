"""What tests of the simulator share: starting it, and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.simulator.simulator import Simulator

PATIENCE_S = 30.0


class Simulate(Protocol):
    """The fixture `simulate`."""

    def __call__(self, write: Callable[[Path], Path], **settings: object) -> Simulator:
        """Start a simulator of the tree that `write` (see trees.py) writes; it ends with the test."""


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
