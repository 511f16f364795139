"""The record of one run: a policy at work on a request, what it asks for, what ran, and how it ended."""

from __future__ import annotations

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
    deadline_s: float | None  # on the driver's clock
    photograph: Photograph | None  # the image, decoded

    @property
    def is_counted(self) -> bool:
        """Whether the reported runs and times of the models include it."""

    @property
    def has_promise(self) -> bool:
        """Whether its error rate is promised, so that only the policy itself may answer."""

    @property
    def file(self) -> memoryview | None:
        """The image file as it was sent; None if it is not exactly the image."""

    def model_input(self, model: str) -> NDArray[np.float32]:
        """Return the input (1, 3, height, width) of a model."""


class Handle(Protocol):
    """A run elsewhere that was submitted, or a timer."""

    def cancel(self) -> None:
        """Have it ended if that still helps. Its result may come nevertheless, from another thread."""


class SharedState(Struct, eq=False):
    """What several threads may bring to a run; the lock of SharedRuns guards it."""

    results: dict[str, Prediction | JetselError] = field(default_factory=dict)  # of the models that it asked for
    pending: list[Handle] = field(default_factory=list)  # its runs elsewhere and timers, until it goes on
    is_held: bool = False  # its runs here have not begun, and may be spared


class RequestRun(Evidence, kw_only=True):
    """A policy at work on one request; the driver moves it."""

    policy: Policy
    request: Request
    stages: Stages = field(default_factory=lambda: Stages(0.0, 0.0, None, 0.0, [], 0.0, 0.0, 0.0))  # its times
    outcome: Decision | Exception | None = None  # None until the policy has ended
    ran: list[Ran] = field(default_factory=list)  # in the order in which their results came
    steps: Steps | None = None  # the policy itself, once it has begun
    pending: Run | None = None  # what it waits for
    asked_s: float = 0.0  # when it asked
    best: Prediction | None = None  # the last that it was given: the answer if time runs out
    ran_again: tuple[str, ...] = ()  # models whose run died with its engine and was repeated
    shared: SharedState | None = None  # None while all that it asked for runs in the thread that has it
