"""One request's policy at work on a photograph: what it asks for, what ran, and how it ended. The driver moves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.runtime.events import Timer
from jetsel.wire import Criterion, Ran


class Handle(Protocol):
    """A run elsewhere that was submitted."""

    def cancel(self) -> None:
        """Have it ended if that still helps. Its result may come nevertheless, from another thread."""


class RequestRun(Struct, eq=False):
    """A policy at work on one photograph.

    model_input: gives the (1, 3, height, width) float32 input of a model by its name; asked once for each run.
    deadline_s: on the driver's clock, or None. `outcome` is None until the policy has ended.
    """

    policy: Policy
    photo: Evidence
    criterion: Criterion
    model_input: Callable[[str], NDArray[np.float32]]
    deadline_s: float | None = None
    request_id: str = ""  # for the log
    owner: Any = None  # for the caller that started it
    is_counted: bool = True  # in the reported runs and times of the models
    unused: Callable[[str], None] = lambda _: None  # receives a model that ran although the policy had gone on
    outcome: Decision | Exception | None = None
    cut_short: bool = False
    choice_ms: float = 0.0
    waiting_ms: float = 0.0  # that it stood in queues before its models ran, all of them together
    ran: list[Ran] = field(default_factory=list)
    # The driver's own bookkeeping.
    steps: Steps | None = None
    is_shared: bool = False  # it asked for what several threads may bring: its results are taken under the lock
    handles: dict[str, Handle] = field(default_factory=dict)  # of its runs elsewhere, by model
    timer: Timer | None = None
    is_held: bool = False  # its runs here have not begun, and may be spared
    asked: Run | None = None
    asked_s: float = 0.0  # when it asked
    results: dict[str, Prediction | JetselError] = field(default_factory=dict)  # of the models that it asked for
    best: Prediction | None = None  # a model's last that it was given: what answers if time runs out
    ran_again: set[str] = field(default_factory=set)  # models whose run died with its engine and was given another go
