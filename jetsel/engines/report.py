"""How the process that runs models fares, for who watches the daemon."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

HostState = Literal["idle", "starting", "running", "restarting", "failed", "given-up"]


@dataclass(frozen=True)
class HostReport:
    """One engine host at a glance.

    state: idle before any model asks for it; failed where its first start did, and the next model tries again; given-up
    where it ended too often, and only a reload starts it. reason: why it does not run, None where it does.
    restarts: how often one was running again after one that had ended. last_end: how that was, None where none has.
    """

    state: HostState
    reason: str | None
    pid: int | None
    restarts: int
    last_end: str | None
    last_end_ago_s: float | None


class History:
    """What one supervisor remembers of the hosts that it had."""

    def __init__(self) -> None:
        self.restarts = 0
        self._last_end: tuple[str, float] | None = None

    def ended(self, how: str) -> None:
        """Note that a host has ended, or did not start again."""
        self._last_end = (how, time.monotonic())

    def report(self, state: HostState, reason: str | None, pid: int | None) -> HostReport:
        """Return it with how the host stands now."""
        how, when_s = self._last_end or (None, None)
        ago_s = None if when_s is None else time.monotonic() - when_s
        return HostReport(state, reason, pid, self.restarts, how, ago_s)
