"""Counters of the daemon: requests by outcome, reloads, and the times of the answers' stages."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping

from msgspec import structs

from jetsel.base.errors import JetselError
from jetsel.runtime.model_times import BOUNDS_MS, TimeHistogram
from jetsel.wire import Answer, Failure
from jetsel.wire.counts import AnswerCounts, Histogram, RecentAnswer
from jetsel.wire.status import ReloadStatus

STAGES = ("queue", "decode", "features", "choice", "inference", "total", "waiting", "input")
OK = "ok"
MOST_RECENT = 1000


class Tally:
    """Counts requests and reloads since the start, behind one lock. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()  # OK, or an error code
        self._answers: Counter[str] = Counter()  # by family
        self._by_model: Counter[tuple[str, str]] = Counter()  # family and model
        self._by_policy: Counter[tuple[str, str]] = Counter()  # family and policy
        self._by_label: Counter[tuple[str, str]] = Counter()  # family and label, if class_counts is on
        self._flags: Counter[str] = Counter()  # in_doubt, cut_short, on_time, late
        self._stages = [TimeHistogram() for _ in STAGES]
        self._recent: deque[RecentAnswer] = deque(maxlen=MOST_RECENT)  # ago_s: time.monotonic() of sending
        self._escalated: Counter[str] = Counter()  # by family: answers for which several models ran
        self._reloads: Counter[str] = Counter()  # OK, or an error code
        self._last_reload: ReloadStatus | None = None  # ago_s: time.monotonic() of its end
        self.started_s = time.monotonic()
        self.instance = secrets.token_hex(8)  # names this process, so that a restart is noticed

    def count(self, outcome: str) -> None:
        """Count one request that was refused or failed. outcome: its error code."""
        with self._lock:
            self._outcomes[outcome] += 1

    def count_reply(
        self, reply: Answer | Failure, deadline_ms: float | None = None, *, class_counts: bool = False
    ) -> None:
        """Count an admitted request by its reply, with its stages' times. class_counts: whether to count its label."""
        if isinstance(reply, Failure):
            self.count(reply.code)
            return
        stages, family = reply.stages_ms, reply.family
        features = math.nan if stages.features is None else stages.features
        waiting = math.nan if stages.waiting is None else stages.waiting
        inference, input_ms = sum(stages.inference), stages.input or 0.0
        # In the order of STAGES; a histogram ignores NaN.
        stages_ms = (stages.queue, stages.decode, features, stages.choice, inference, stages.total, waiting, input_ms)
        with self._lock:
            self._outcomes[OK] += 1
            self._answers[family] += 1
            self._escalated[family] += len(reply.ran) > 1
            self._by_model[family, reply.model] += 1
            self._by_policy[family, reply.policy] += 1
            if class_counts:
                self._by_label[family, reply.label] += 1
            self._flags["in_doubt"] += reply.in_doubt
            self._flags["cut_short"] += reply.cut_short
            if deadline_ms is not None:
                self._flags["on_time" if stages.total <= deadline_ms else "late"] += 1
            for histogram, ms in zip(self._stages, stages_ms, strict=True):
                histogram.add(ms)
            self._recent.append(_recent_answer(reply))

    def count_reload(self, took_s: float, result: list[str] | JetselError) -> None:
        """Count a reload that has just ended. result: what it changed, in words, or the error that refused it."""
        changed, refused = (result, None) if isinstance(result, list) else ([], result)
        with self._lock:
            self._reloads[OK if refused is None else refused.code] += 1
            error = None if refused is None else str(refused)
            self._last_reload = ReloadStatus(time.monotonic(), round(took_s, 3), changed, error)

    def outcomes(self) -> dict[str, int]:
        """Return the number of requests by `ok` or error code."""
        with self._lock:
            return dict(self._outcomes)

    def family_counts(self, family: str) -> tuple[int, int]:
        """Return the number of a family's answers, and of those for which more than one model ran."""
        with self._lock:
            return self._answers[family], self._escalated[family]

    def answers(self, runs: dict[str, dict[str, Histogram]], *, class_counts: bool) -> AnswerCounts:
        """Return counts of all answers. runs: histograms of run times, to include. class_counts: whether by label."""
        with self._lock:
            return AnswerCounts(
                by_model=_nested(self._by_model),
                by_policy=_nested(self._by_policy),
                in_doubt=self._flags["in_doubt"],
                cut_short=self._flags["cut_short"],
                on_time=self._flags["on_time"],
                late=self._flags["late"],
                bounds_ms=list(BOUNDS_MS),
                stages={stage: histogram.copy() for stage, histogram in zip(STAGES, self._stages, strict=True)},
                runs=runs,
                by_label=_nested(self._by_label) if class_counts else None,
            )

    def recent(self, most: int) -> list[RecentAnswer]:
        """Return the last `most` answers, the newest first, at most MOST_RECENT."""
        with self._lock:
            newest = list(self._recent)[-most:] if most else []
        now_s = time.monotonic()
        # Until here, ago_s holds the time of sending.
        return [structs.replace(answer, ago_s=round(now_s - (answer.ago_s or 0.0), 3)) for answer in reversed(newest)]

    def reloads(self) -> dict[str, int]:
        """Return the number of reloads by `ok` or error code."""
        with self._lock:
            return dict(self._reloads)

    def last_reload(self) -> ReloadStatus | None:
        """Return the result of the last reload, None if there was none."""
        last = self._last_reload  # its ago_s holds the time of its end
        return None if last is None else structs.replace(last, ago_s=round(time.monotonic() - (last.ago_s or 0.0), 3))


def _nested(flat: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return counts by (family, name) as family -> name -> count."""
    nested: dict[str, dict[str, int]] = {}
    for (family, name), count in flat.items():
        nested.setdefault(family, {})[name] = count
    return nested


def _recent_answer(reply: Answer) -> RecentAnswer:
    return RecentAnswer(
        id=reply.id,
        ago_s=time.monotonic(),
        family=reply.family,
        label=reply.label,
        probability=reply.probability,
        model=reply.model,
        policy=reply.policy,
        ran=[ran.model for ran in reply.ran],
        total_ms=reply.stages_ms.total,
        energy_mj=reply.energy_mj,
        in_doubt=reply.in_doubt,
    )
