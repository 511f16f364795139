"""Wait until something is so, as tests of other processes and threads must."""

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_S = 120.0  # for what takes milliseconds on an idle machine: nothing here is about speed
LOOK_S = 0.01

Found = TypeVar("Found")


def until(met: Callable[[], Found], limit_s: float = LIMIT_S) -> Found:
    """Ask until there is an answer that is true, and return it; fails where none comes within the limit."""
    give_up_s = time.monotonic() + limit_s
    while not (found := met()):
        assert time.monotonic() < give_up_s, "it never came"
        time.sleep(LOOK_S)
    return found
