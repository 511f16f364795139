"""Makes the n-th operation on files fail, through the interpreter's own audit hook, as a full disk would."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

MOST_STEPS = 1000


class Fault:
    """Fails one operation of the thread that made it: the `left`-th from now, none where that is 0."""

    def __init__(self) -> None:
        self.left = 0
        self._thread = threading.get_ident()
        sys.addaudithook(self._look)  # it cannot be removed again; without a fault it does nothing

    def at_each_step(self) -> Iterator[int]:
        """Have the first operation of the loop's body fail, in its next turn the second, and so on."""
        try:
            for step in range(1, MOST_STEPS):
                self.left = step
                yield step
        finally:
            self.left = 0

    def _look(self, event: str, _: tuple[Any, ...]) -> None:
        if self.left > 0 and threading.get_ident() == self._thread and event.startswith(("open", "os.", "fcntl.")):
            self.left -= 1
            if self.left == 0:
                raise OSError(28, "No space left on device")


_FAULT = Fault()  # one for all tests of a process, since its hook cannot be removed


@pytest.fixture
def fault() -> Fault:
    return _FAULT
