"""One model as the driver sees it: its engine, the runs that wait for it, and how long they take."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from jetsel.base.errors import EngineDiedError, ModelUnavailableError
from jetsel.engines import Engine, OnDemandEngine
from jetsel.runtime.model_times import ModelTimes
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.runner import Runner

LONGEST_ABSENCE_S = 30.0  # that a run waits for an engine that is being brought back: the first pauses and a slow load


@dataclass(eq=False)
class ModelQueue:
    """A model, the request runs that wait for it, and its times.

    temperature divides the logits (Guo et al. 2017, section 4.2). unavailable: why it did not load, None if it did.
    runner: of a model that runs elsewhere, which has no engine, and for which nothing waits here. prior_ms: calibrated
    mean and standard deviation of one run, None if there is no calibration.
    """

    model: str
    engine: Engine | None
    temperature: float = 1.0
    unavailable: str | None = None
    waiting: deque[RequestRun] = field(default_factory=deque)
    runner: Runner | None = None
    times: ModelTimes = field(default_factory=ModelTimes)
    prior_ms: tuple[float, float] | None = None

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
        if (deadline_s := run.request.deadline_s) is not None:
            return now_s + self.engine.returns_within_s + (self.times.percentile_ms(0.95) or 0.0) / 1e3 <= deadline_s
        return now_s - run.asked_s <= LONGEST_ABSENCE_S

    def expected_ms(self, share: float, now_s: float) -> float | None:
        """Return the expected percentile of the next run for one image, None if nothing is known."""
        return self.times.expected_ms(share, now_s, self.prior_ms)
