"""When an engine host is asked whether it lives, and when one that ended is started again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """When a host is asked whether it lives, and how often it is started again."""

    hello_s: float = 60.0
    ping_every_s: float = 5.0  # of an idle host
    ping_limit_s: float = 5.0
    first_pause_s: float = 0.1  # before the second start within the window; it doubles with every further one
    longest_pause_s: float = 30.0
    same_failure_s: float = 2.0  # that a failed first start is not tried again: the next model asks at once
    window_s: float = 300.0
    load_limit_s: float = 240.0
    most_strikes: int = 2  # deaths while loading one model: it is left out from then on


RULES = Rules()


class Deaths:
    """The ends of hosts within the window. Times are seconds on the monotonic clock."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._times_s: deque[float] = deque()
        self.pause_s = 0.0  # before the next start

    def count(self, now_s: float) -> None:
        """Count one more: no pause follows the first, then one that is twice as long each time."""
        self._times_s.append(now_s)
        while now_s - self._times_s[0] > self._rules.window_s:
            self._times_s.popleft()
        earlier, rules = len(self._times_s) - 1, self._rules
        self.pause_s = min(rules.first_pause_s * 2.0 ** (earlier - 1), rules.longest_pause_s) if earlier else 0.0
