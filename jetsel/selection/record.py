"""What one model has done since it was loaded, for who watches the daemon; reloads that keep the model keep it too."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from jetsel.recent import Percentiles, Recent, percentiles


@dataclass(eq=False)
class Record:
    """Counts and times of one model's runs. Any thread may call.

    runs: photographs that it classified. escalations: those of them for which the policy then ran another model.
    """

    runs: int = 0
    escalations: int = 0
    _times_ms: Recent = field(default_factory=lambda: Recent(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ran(self, photographs: int, each_ms: float, now_s: float) -> None:
        """Count one run of so many photographs together, and note what each took."""
        with self._lock:
            self.runs += photographs
            self._times_ms.add(now_s, each_ms)

    def escalated(self) -> None:
        """Count a photograph for which another model ran after this one."""
        with self._lock:
            self.escalations += 1

    def percentiles_ms(self, now_s: float) -> Percentiles | None:
        """Return the times of one photograph in the recent runs, None where there were none."""
        with self._lock:
            kept = self._times_ms.kept()
        values, _ = kept.since(now_s)
        return percentiles(values[:, 0])
