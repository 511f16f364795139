"""Models that run elsewhere: a run is submitted, can be cancelled, and its result arrives as an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from jetsel.base.errors import JetselError
from jetsel.policies.policy import Prediction
from jetsel.runtime.request_run import Handle, RequestRun


class Traffic(NamedTuple):
    """What went over the network for one run."""

    sent_bytes: int
    received_bytes: int


class Expected(NamedTuple):
    """What a run elsewhere takes: mean and deviation in ms of the work there and of the way, traffic in 1,000 bytes.

    None for what is not known yet.
    """

    run_ms: tuple[float, float] | None
    way_ms: tuple[float, float] | None
    traffic_kb: float | None


Arrived: TypeAlias = Callable[[Prediction | JetselError, Traffic | None], None]
"""Called once with the result, from any thread, and at the earliest while `submit` is under way."""


class Runner(Protocol):
    """A place where models run without blocking the caller. It may be given the photograph as it was sent."""

    @property
    def unavailable(self) -> str | None:
        """Why no run can be had now, None if one can."""

    def expected(self, size_px: tuple[int, int], file_bytes: int | None, now_s: float) -> Expected:
        """Return what a run takes for an image of this width and height. file_bytes: None if it came as pixels."""

    def submit(self, model: str, run: RequestRun, arrived: Arrived) -> Handle:
        """Have this model look at the run's photograph. Never blocks nor raises: `arrived` receives what failed."""
