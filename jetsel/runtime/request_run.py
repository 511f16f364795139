"""State of a policy at work on one request: what it waits for, what ran, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.image import Photograph
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.wire import Classify, Ran, Stages


class Request(Protocol):
    """The request of a run; in the daemon, a Job."""

    message: Classify  # with the id
    photograph: Photograph | None  # the image; None until it is decoded

    @property
    def deadline_s(self) -> float | None:
        """Time by which it must be answered, on the driver's clock; None: no deadline."""

    @property
    def is_counted(self) -> bool:
        """Whether its runs count in the models' reported numbers and times; the daemon's own probe does not count."""

    @property
    def has_promise(self) -> bool:
        """Whether its error rate is promised, so that only the policy itself may answer."""

    @property
    def file(self) -> memoryview | None:
        """The image file as it was sent; None if raw pixels or a box were sent."""

    def model_input(self, model: str) -> NDArray[np.float32]:
        """Return the input (1, 3, height, width) of a model."""


class SharedState(Struct, eq=False):
    """State that several threads may change; the lock of SharedRuns guards it."""

    results: dict[str, Prediction | JetselError] = field(default_factory=dict)  # by requested model
    cancellations: list[Callable[[], None]] = field(default_factory=list)  # of its remote runs and timers
    is_held: bool = False  # its runs on this device are held back and may not be needed


class RequestRun(Evidence, kw_only=True):
    """A policy at work on one request; the driver resumes it."""

    policy: Policy
    request: Request
    stages: Stages = field(default_factory=lambda: Stages(0.0, 0.0, None, 0.0, [], 0.0, 0.0, 0.0))  # its times
    outcome: Decision | Exception | None = None  # the decision or the error; None until the policy has ended
    ran: list[Ran] = field(default_factory=list)  # in the order of the results
    steps: Steps | None = None  # the policy's generator; None until it has begun
    pending: Run | None = None  # models that it waits for; None: it waits for none
    requested_s: float = 0.0  # time at which it requested them, on the driver's clock
    best: Prediction | None = None  # last result: the answer if time runs out; None: no model has answered yet
    ran_again: tuple[str, ...] = ()  # models that ran again because their engine died
    shared: SharedState | None = None  # None as long as only one thread works on it
