"""One request's policy on its way: what it waits for, what ran, and how it ended. The driver alone moves it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from jetsel.errors import JetselError
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.wire import Criterion, Ran


class Flight(Struct, eq=False):
    """A policy at work on one photograph.

    model_input: gives the (1, 3, height, width) float32 input of a model by its name; asked once for each run.
    deadline_s: on the driver's clock, or None. `outcome` is None until the flight has ended.
    """

    policy: Policy
    photo: Evidence
    criterion: Criterion
    model_input: Callable[[str], NDArray[np.float32]]
    deadline_s: float | None = None
    is_counted: bool = True  # in what is told of the models' runs and times
    outcome: Decision | JetselError | None = None
    cut_short: bool = False
    choice_ms: float = 0.0
    waiting_ms: float = 0.0  # that it stood in lanes before its runs began, all of them together
    ran: list[Ran] = field(default_factory=list)
    # The driver's own bookkeeping.
    steps: Steps | None = None
    asked: Run | None = None
    waiting_since_s: float = 0.0
    landed: dict[str, Prediction | JetselError] = field(default_factory=dict)
    predictions: list[Prediction] = field(default_factory=list)
    ran_again: set[str] = field(default_factory=set)  # models whose run died with its engine and was given another go
