"""What one model has done since it was loaded, for who watches the daemon; reloads that keep the model keep it too."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from jetsel.base.recent import Percentiles, Recent, percentiles


@dataclass(eq=False)
class Record:
    """Counts and times of one model's runs. Any thread may call.

    A run, its time and whether it was an escalation are counted at once, when the policy has seen it: of whatever
    time, there are never more escalations than runs.
    """

    _runs: int = 0
    _escalations: int = 0
    _times_ms: Recent = field(default_factory=lambda: Recent(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ran(self, took_ms: float, now_s: float, *, escalated: bool) -> None:
        """Count a photograph that it classified. escalated: whether the policy then asked for another model."""
        with self._lock:
            self._runs += 1
            self._escalations += escalated
            self._times_ms.add(now_s, took_ms)

    def counts(self) -> tuple[int, int]:
        """Return the photographs that it classified, and for how many of them another model was then asked."""
        with self._lock:
            return self._runs, self._escalations

    def percentiles_ms(self, now_s: float) -> Percentiles | None:
        """Return the times of one photograph in the recent runs, None where there were none."""
        with self._lock:
            kept = self._times_ms.kept()
        values, _ = kept.since(now_s)
        return percentiles(values[:, 0])
