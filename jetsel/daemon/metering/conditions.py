"""Whether the board is still as it was when it was calibrated: reasons in words, and a warning."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

from jetsel.base.events import event
from jetsel.power.machine import Facts, differences, throttled

log = logging.getLogger("jetsel.power")

SHORTLY_S = 10.0
"""How long an alarm is reported after it went off, and reasons must be gone before that is logged: heat comes and goes
at a trip point."""

BOARD = "the board"


class Conditions:
    """Compares each look at the board with what was measured, and remembers what it has warned of.

    One thread looks; any thread may read `reasons`.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Facts]] = deque()
        self._seen_s: dict[str, float] = {}  # when a reason was last seen, by what it concerns
        self.reasons: dict[str, list[str]] = {}
        """What is wrong, by what it concerns: BOARD, or what was measured. Replaced as a whole, and never changed."""

    def look(self, now_s: float, facts: Facts, measured: Mapping[str, Facts]) -> None:
        """Take in the board's facts of now. measured: the facts that each measurement in use was made under."""
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= SHORTLY_S:
            self._looks.popleft()
        before = self._looks[0][1] if self._looks else None
        self._looks.append((now_s, facts))
        found = {BOARD: throttled(before, facts)} | {what: differences(was, facts) for what, was in measured.items()}
        self.reasons = {what: why for what, why in found.items() if why}
        self._warn(now_s)

    def of(self, *concerned: str) -> list[str]:
        """Return the reasons in words that concern the board or one of these measurements."""
        reasons = self.reasons
        return words({what: reasons[what] for what in (BOARD, *concerned) if what in reasons})

    def _warn(self, now_s: float) -> None:
        """Log once what is concerned and why while any reason lasts, and once that all are over."""
        for what, why in self.reasons.items():
            if what not in self._seen_s:
                log.warning("out of its conditions: %s: %s", what, "; ".join(why), extra=event("out-of-conditions"))
            self._seen_s[what] = now_s
        for what in [what for what, seen_s in self._seen_s.items() if now_s - seen_s >= SHORTLY_S]:
            log.warning("no longer out of its conditions: %s", what, extra=event("in-conditions"))
            del self._seen_s[what]


def words(reasons: Mapping[str, list[str]]) -> list[str]:
    """Return every reason with what it concerns."""
    return [f"{what}: {reason}" for what, why in reasons.items() for reason in why]
