"""One model as the driver sees it: its engine, the runs that wait for it, and how long they take."""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from jetsel.base.errors import EngineDiedError, ModelUnavailableError
from jetsel.base.recent import FORGET_S, Estimate, Percentiles, Recent, percentiles
from jetsel.engines import Engine, OnDemandEngine
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.runner import Runner


@dataclass(eq=False)
class RunRecord:
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
        """Return the times of one photograph in the recent runs, None if there were none."""
        with self._lock:
            kept = self._times_ms.kept()
        values, _ = kept.since(now_s)
        return percentiles(values[:, 0])


LONGEST_ABSENCE_S = 30.0  # that a run waits for an engine that is being brought back: the first pauses and a slow load
FRESH_S = 1.0  # so long a time says how long the next run takes, whatever was calibrated
RECENT = 256  # runs from which the next one's time is estimated: a few seconds under load
SORT_EVERY = 16  # of them, or a quarter: each request reads percentiles, and they change little by one run


class RecentTimes:
    """The last times of one image, and their percentiles, a few runs old. Any thread may call."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=RECENT)
        self._sorted: list[float] = []
        self._added = 0

    def append(self, took_ms: float) -> None:
        """Note a time."""
        self._kept.append(took_ms)
        self._added += 1
        if self._added >= min(SORT_EVERY, len(self._kept) // 4):
            self._sorted, self._added = sorted(self._kept.copy()), 0

    def percentile(self, share: float) -> float | None:
        """The time that this share of them stayed below; None if there is none."""
        known = self._sorted
        return known[min(int(share * len(known)), len(known) - 1)] if known else None


@dataclass(eq=False)
class ModelQueue:
    """A model, the request runs that wait for it, and its recent times.

    temperature divides the logits (Guo et al. 2017, section 4.2). unavailable: why it did not load, None if it did.
    runner: of a model that runs elsewhere, which has no engine, and for which nothing waits here.
    """

    model: str
    engine: Engine | None
    temperature: float = 1.0
    unavailable: str | None = None
    waiting: deque[RequestRun] = field(default_factory=deque)
    record: RunRecord = field(default_factory=RunRecord)
    runner: Runner | None = None
    estimate: Estimate = field(default_factory=Estimate)  # of one run, whatever its batch
    times_ms: RecentTimes = field(default_factory=RecentTimes)  # of one image: a batch's, shared out

    @property
    def reason(self) -> str | None:
        """Why no run can be had now, None if one can."""
        if self.runner is not None:
            return self.runner.unavailable
        if self.engine is None:
            return self.unavailable or "it is not loaded"
        return self.engine.unavailable

    @property
    def serves(self) -> bool:
        """Whether it is loaded, and its engine there or on its way back."""
        return self.engine is not None and (self.engine.unavailable is None or self.engine.is_returning)

    @property
    def state(self) -> Literal["loading", "ready", "unloaded", "unavailable"]:
        """How the model stands, in one word."""
        if self.engine is None and self.runner is None and self.unavailable is None:
            return "loading"
        if self.reason is not None:
            return "unavailable"
        return "unloaded" if isinstance(self.engine, OnDemandEngine) and not self.engine.is_loaded else "ready"

    @property
    def load_ms(self) -> float | None:
        """What its last load took, None if it has no engine that is unloaded and loaded."""
        return self.engine.load_ms if isinstance(self.engine, OnDemandEngine) else None

    @property
    def load_due_ms(self) -> float:
        """How long it takes before a run can begin: what is left of the load of a model that is unloaded."""
        return self.engine.load_due_ms if isinstance(self.engine, OnDemandEngine) else 0.0

    def want(self) -> None:
        """Have a model that is unloaded loaded: someone asks for it, whether or not they can wait for that."""
        if isinstance(self.engine, OnDemandEngine):
            self.engine.want()

    def refusal(self) -> ModelUnavailableError:
        """The error for who asks for a run of a model that is away."""
        is_returning = self.engine is not None and self.engine.is_returning
        kind = EngineDiedError if is_returning else ModelUnavailableError
        return kind(f"{self.model} is unavailable: {self.reason}")

    def batch_limit(self, most: int) -> int:
        """How many runs may go out together: one if batches are no faster, `most` if the engine has no limit."""
        if isinstance(self.engine, OnDemandEngine) and not self.engine.gains_by_batches:
            return 1
        limit = self.engine.max_batch if self.engine is not None else None
        return most if limit is None else min(most, limit)

    def may_wait(self, run: RequestRun, now_s: float) -> bool:
        """Whether a run may still be had in time from an engine that is away."""
        if self.engine is None:
            return False
        if self.engine.unavailable is not None and not self.engine.is_returning:
            return False  # one that is back already may be waited for, too
        if run.deadline_s is not None:
            return now_s + self.engine.returns_within_s + (self.percentile_ms(0.95) or 0.0) / 1e3 <= run.deadline_s
        return now_s - run.asked_s <= LONGEST_ABSENCE_S

    def expected_ms(self, share: float, now_s: float) -> float | None:
        """As percentile_ms; if nothing ran yet, what was calibrated, and if nothing ran for a while, no more.

        Without a calibration, the fastest of the recent times, and less the longer ago that was. Else one that was slow
        once would be refused for it for ever, and never be seen to be fast again.
        """
        recent_ms, age_s = self.percentile_ms(share), now_s - self.estimate.seen_s
        known_ms = None if self.estimate.prior_ms is None else self.estimate.prior_ms[0]
        if recent_ms is None or age_s < FRESH_S:
            return known_ms if recent_ms is None else recent_ms
        if known_ms is None:
            known_ms = (self.percentile_ms(0.0) or 0.0) * math.exp(-age_s / FORGET_S)
        return min(recent_ms, known_ms)

    def percentile_ms(self, share: float) -> float | None:
        """The time of one image that this share of the recent runs stayed below; None if none was measured."""
        return self.times_ms.percentile(share)
