"""Lines that repeat: the first few are told, the rest are counted, and the count is told every ten seconds."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from jetsel.daemon.logs.entry import NO_EVENT

WINDOW_S = 10.0
LINES = 5  # of one kind in a window
MORE_LINES = {
    "host-output": 100,  # a traceback has thirty lines, and other libraries are no shorter
    "sampler-output": 100,
    "keys-changed": 100,  # a line for each key, or each thing that is out of its conditions
    "out-of-conditions": 100,
    "in-conditions": 100,
}
UNLIMITED = frozenset({"request", "reload-begun", "reloaded", "reload-refused", "reload-failed"})
"""Asked for by [log] requests, or one by one by who may change the daemon: every one is told."""
SUBJECTS = (
    "family",
    "model",
    "path",
    "section",
    "address",
    "reason",
)  # lines about another one of these are of another kind

_Kind = tuple[object, ...]


@dataclass
class _Window:
    ends_s: float
    told: int = 0
    left_out: int = 0
    last: logging.LogRecord | None = None


class Flood:
    """What was told lately. Times are of time.monotonic(); for one thread at a time."""

    def __init__(self) -> None:
        self._windows: dict[_Kind, _Window] = {}

    def is_told(self, record: logging.LogRecord, now_s: float) -> bool:
        """Whether this one is to be told; counted where not. `over` is called first."""
        event = getattr(record, "event", NO_EVENT)
        if event in UNLIMITED:
            return True
        window = self._windows.setdefault(_kind(event, record), _Window(now_s + WINDOW_S))
        if window.told < MORE_LINES.get(event, LINES):
            window.told += 1
            return True
        window.left_out += 1
        window.last = record
        return False

    def over(self, now_s: float) -> list[tuple[logging.LogRecord, int]]:
        """End the windows whose time is over: the last record of each that was left out, and how many were.

        A kind that was cut stays cut: in its next window it has its count alone, until it was quiet for one.
        """
        found = []
        for kind, window in list(self._windows.items()):
            if now_s < window.ends_s:
                continue
            if window.last is None:
                del self._windows[kind]
                continue
            found.append((window.last, window.left_out))
            self._windows[kind] = _Window(now_s + WINDOW_S, told=window.told)
        return found

    @property
    def next_s(self) -> float | None:
        """When there is a count to tell; None where nothing was left out."""
        return min((window.ends_s for window in self._windows.values() if window.left_out), default=None)


def _kind(event: str, record: logging.LogRecord) -> _Kind:
    """Lines of one event, of one level and place in the code, about one subject."""
    fields = getattr(record, "fields", None) or {}
    return (event, record.name, record.lineno, *(str(fields.get(subject)) for subject in SUBJECTS))
