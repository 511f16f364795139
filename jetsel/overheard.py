"""What a process that we started prints, line by line, so that the log can say whose words they are."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

LONGEST_LINE = 2000  # characters; a longer one is cut into several
_PART_BYTES = 65_536


def pipe() -> tuple[int, int]:
    """Return the end to `overhear`, and the end to start the process with and to close then; raises OSError."""
    return os.pipe2(os.O_CLOEXEC)


def overhear(fd: int, tell: Callable[[str], None], name: str) -> None:
    """Have a thread of this name read lines until all who write there are gone; it closes the descriptor.

    tell: is called with each line that is not blank, without its end.
    """
    threading.Thread(target=_listen, args=(fd, tell), name=name, daemon=True).start()


def _listen(fd: int, tell: Callable[[str], None]) -> None:
    begun = b""
    try:
        while part := os.read(fd, _PART_BYTES):
            *lines, begun = (begun + part).split(b"\n")
            if len(begun) > LONGEST_LINE:
                lines, begun = [*lines, begun], b""
            for line in lines:
                _tell(line, tell)
        _tell(begun, tell)
    finally:
        os.close(fd)


def _tell(line: bytes, tell: Callable[[str], None]) -> None:
    text = line.decode(errors="replace").rstrip()
    for at in range(0, len(text), LONGEST_LINE):
        tell(text[at : at + LONGEST_LINE])
