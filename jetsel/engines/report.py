"""The state of the process that runs models, for whoever watches the daemon."""

from __future__ import annotations

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
