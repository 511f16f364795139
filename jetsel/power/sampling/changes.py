"""What the log says when the sensors fail and return: a pair of lines, and then a count, of a rail that flaps."""

from __future__ import annotations

import logging

from jetsel.events import event
from jetsel.power.sampling.messages import Word

log = logging.getLogger("jetsel.power")

QUIET_S = 10.0  # after two lines
LINES = 2  # that it is gone, and that it is back


class Changes:
    """Changes between `power is measured` and `it is not`. For one thread; the times are of time.monotonic()."""

    def __init__(self) -> None:
        self._began_s = float("-inf")
        self._lines = 0
        self._untold = 0
        self._word: Word | None = None

    def add(self, word: Word, now_s: float) -> None:
        """Say that it has changed, or count it where that was said twice in the last 10 s."""
        self.look(now_s)
        if now_s - self._began_s >= QUIET_S:
            self._began_s, self._lines = now_s, 0
        if self._lines < LINES:
            self._lines += 1
            log.warning("%s", _state(word), extra=_told(word))
        else:
            self._untold += 1
            self._word = word

    def look(self, now_s: float) -> None:
        """Say what was only counted, once the 10 s are over; to be called every few seconds."""
        if self._word is not None and now_s - self._began_s >= QUIET_S:
            passed_s, told = now_s - self._began_s, _told(self._word, self._untold)
            state = _state(self._word)
            log.warning("%s; it changed %d times more in %.0f s", state, self._untold, passed_s, extra=told)
            self._began_s, self._lines, self._untold, self._word = now_s, LINES - 1, 0, None


def _state(word: Word) -> str:
    if word.reason is not None:
        return f"power is not measured: {word.reason}"
    return f"power is measured again: {' + '.join(word.total_of)}"


def _told(word: Word, left_out: int | None = None) -> dict[str, object]:
    if word.reason is not None:
        return event("power-lost", left_out=left_out)
    return event("power-found", rail=word.total_of, left_out=left_out)
