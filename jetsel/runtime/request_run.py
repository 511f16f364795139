"""State of one request while its policy runs: the models that it waits for, those that ran, and how it ended."""

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
    """What the driver reads of a request; the daemon's Job has these attributes."""

    message: Classify  # the client's message, with the request's id
    photograph: Photograph | None  # the image; None until it is decoded

    @property
    def deadline_s(self) -> float | None:
        """Time by which it must be answered, on the driver's clock; None: no deadline."""

    @property
    def is_counted(self) -> bool:
        """Whether its runs count in the models' reported numbers and times; the daemon's own probes do not count."""

    @property
    def has_promise(self) -> bool:
        """Whether the client was promised a maximum error rate, so that only the policy's own answer is allowed."""

    @property
    def file(self) -> memoryview | None:
        """The image file as it was sent; None if the request has raw pixels, or a box, a part of an image."""

    def model_input(self, model: str) -> NDArray[np.float32]:
        """Return the request's image as the input of a model, (1, 3, height, width)."""


class SharedState(Struct, eq=False):
    """State of a run that several threads bring results for; the lock of SharedRuns guards it."""

    results: dict[str, Prediction | JetselError] = field(default_factory=dict)  # of RequestRun.pending, by model
    cancellations: list[Callable[[], None]] = field(default_factory=list)  # call each to cancel a remote run or a timer
    is_held: bool = False  # its models on this device wait for Run.held_ms, and may not be needed


class RequestRun(Evidence, kw_only=True):
    """One request's policy while it runs, its generator and its results; the driver resumes the generator."""

    policy: Policy
    request: Request
    stages: Stages = field(default_factory=lambda: Stages(0.0, 0.0, None, 0.0, [], 0.0, 0.0, 0.0))  # the answer's times
    outcome: Decision | Exception | None = None  # the decision or the error; None until the policy has ended
    ran: list[Ran] = field(default_factory=list)  # in the order of the results
    steps: Steps | None = None  # the policy's generator; None until it has begun
    pending: Run | None = None  # models that it waits for; None: it waits for none
    requested_s: float = 0.0  # time at which it requested them, on the driver's clock
    best: Prediction | None = None  # last result: the answer if time runs out; None: no model has answered yet
    ran_again: tuple[str, ...] = ()  # models that ran again because their engine died
    shared: SharedState | None = None  # None as long as only one thread works on it
