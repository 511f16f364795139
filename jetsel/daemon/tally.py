"""What the daemon counts: requests by outcome, reloads, and where the time of the recent answers went."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter

from msgspec import structs

from jetsel.errors import JetselError
from jetsel.recent import Recent, percentiles
from jetsel.wire import Answer, Failure
from jetsel.wire.status import Percentiles, ReloadStatus, StageTimes

STAGES = ("queue", "decode", "features", "choice", "inference", "total", "waiting", "input")  # as StageTimes has them
OK = "ok"


class Tally:
    """Counters behind one lock; each message is counted once. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()  # by family
        self._escalated: Counter[str] = Counter()
        self._reloads: Counter[str] = Counter()
        self._last_reload: ReloadStatus | None = None  # ago_s: when it ended
        self._stages_ms = Recent(len(STAGES))
        self.started_s = time.monotonic()

    def count(self, outcome: str) -> None:
        """Count a message that was refused with this error code."""
        with self._lock:
            self._outcomes[outcome] += 1

    def ended(self, reply: Answer | Failure) -> None:
        """Count an admitted request by its reply, and note where an answer's time went."""
        if isinstance(reply, Failure):
            self.count(reply.code)
            return
        took, family = reply.stages_ms, reply.family
        features = math.nan if took.features is None else took.features
        waiting = math.nan if took.waiting is None else took.waiting
        inference, now_s = sum(took.inference), time.monotonic()
        with self._lock:
            self._outcomes[OK] += 1
            self._answers[family] += 1
            self._escalated[family] += len(reply.ran) > 1
            self._stages_ms.add(
                now_s, took.queue, took.decode, features, took.choice, inference, took.total, waiting, took.input or 0.0
            )

    def reloaded(self, took_s: float, ended: list[str] | JetselError) -> None:
        """Count a reload that has ended now: with what it changed, or the error that refused it."""
        outcome = OK if isinstance(ended, list) else ended.code
        with self._lock:
            self._reloads[outcome] += 1
            changed, refused = (ended, None) if isinstance(ended, list) else ([], str(ended))
            self._last_reload = ReloadStatus(time.monotonic(), round(took_s, 3), changed, refused)

    def outcomes(self) -> dict[str, int]:
        """Requests so far by `ok` or error code."""
        with self._lock:
            return dict(self._outcomes)

    def of_family(self, family: str) -> tuple[int, int]:
        """How many answers a family gave, and how many of those took more than one model."""
        with self._lock:
            return self._answers[family], self._escalated[family]

    def reloads(self) -> dict[str, int]:
        """Reloads so far by `ok` or error code."""
        with self._lock:
            return dict(self._reloads)

    def last_reload(self) -> ReloadStatus | None:
        """How the last one ended, None where there was none."""
        last = self._last_reload
        return None if last is None else structs.replace(last, ago_s=round(time.monotonic() - last.ago_s, 3))

    def stages_ms(self) -> StageTimes:
        """Where the time of the recent answers went."""
        with self._lock:
            kept = self._stages_ms.kept()
        rows, oldest_s = kept.since(time.monotonic())
        columns = [percentiles(rows[:, column]) for column in range(len(STAGES))]
        return StageTimes(
            len(rows),
            None if oldest_s is None else round(oldest_s, 3),
            *(None if found is None else Percentiles(*(round(ms, 4) for ms in found)) for found in columns),
        )
