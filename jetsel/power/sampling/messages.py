"""What the daemon and the sampler's process say to each other on the socket between them: lines of JSON.

Anything else that the daemon sends wakes the process: a byte for each window that is opened where there was none.
"""

from __future__ import annotations

import msgspec

from jetsel.config import Power


class Start(msgspec.Struct, frozen=True):
    """The daemon's first and only line. ring_fd: the memory of ring.py, inherited. parent: the daemon's process."""

    power: Power
    ring_fd: int
    parent: int


class Word(msgspec.Struct, frozen=True):
    """What the process has found. It is said first of all, and again whenever it changes.

    total_of: names of the rails that are added. reason: why nothing is read, else None. dropped: name and reason.
    """

    total_of: list[str]
    reason: str | None
    dropped: list[tuple[str, str]]
    resolution_w: float | None


WAKE = b"w"
END = b"\n"
