"""What a policy is: a generator that yields the models to run, is sent their predictions, and returns its answer."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError


class Prediction(Struct, frozen=True, eq=False):
    """What one model said: probabilities (classes,) float32 at its calibrated temperature, and its confidence.

    The confidence is the largest probability.
    embedding: the model's penultimate features (width,) float32, None if it gives none.
    """

    model: str
    probabilities: NDArray[np.float32]
    confidence: float
    embedding: NDArray[np.float32] | None = None

    @property
    def label(self) -> int:
        """The index of the most probable class."""
        return int(self.probabilities.argmax())


def best(predictions: list[Prediction]) -> Prediction:
    """The prediction to answer when time runs out: the last, since policies climb from cheap to good."""
    return predictions[-1]


class Outlook(Struct, frozen=True):
    """What a request may know of time and of the edge. All in ms, as it was of late.

    budget: until the deadline, infinite if there is none. models: mean and standard deviation of one run of each
    model that can run now, and that those who wait leave time for; of the edge's, its own work there. network: mean and
    deviation of the way there and back, None if the photograph stays here. unavailable: the models that cannot
    run now, and why. traffic_kb: what goes to a model of the edge and comes back, in 1,000 bytes. images: the mean of
    one image of a run of each model here, which is less if runs go out together. allowed_ms, allowed_mj: what each
    request may take in the mean, so that those that wait are answered in time, and the power budget is kept.
    """

    budget_ms: float
    models_ms: Mapping[str, tuple[float, float]]
    network_ms: tuple[float, float] | None
    unavailable: Mapping[str, str] = {}
    traffic_kb: Mapping[str, float] = {}
    images_ms: Mapping[str, float] = {}
    allowed_ms: float = math.inf
    allowed_mj: float = math.inf

    def image_ms(self, model: str) -> float:
        """Return the mean time of one image of a model's run."""
        mean_ms = self.images_ms.get(model)
        return self.models_ms[model][0] if mean_ms is None else mean_ms


class Evidence(Struct, eq=False):
    """What a policy may know before any model ran; the driver's record of a run is one.

    outlook: None if there is no deadline, unless the policy is that of requirements.
    """

    features: NDArray[np.float32] | None  # (features,), in the order that the policy names them; None if it names none
    fallback: str | None  # the model to use in doubt; None: refuse
    outlook: Outlook | None = None


class Run(Struct, frozen=True):
    """Asks for one or several models, and says which results are waited for.

    until: "all" of them; the "first" that comes; or the best that has come by the "deadline" of the request, if the
    models stand from the worst to the best, and nothing is waited for once the last has come. Of several, those that
    are unavailable are left out unless all are waited for, and those that are not waited for any more are cancelled.
    held_ms: models here begin only so long before the deadline, if those elsewhere have not answered by then.
    """

    models: tuple[str, ...]
    because: str
    until: Literal["all", "first", "deadline"] = "all"
    held_ms: float | None = None


class Decision(Struct, frozen=True, eq=False):
    """A policy's answer. `distance` is that of the neighbours it was read from, if there were any.

    wrong_at_most: the promised share of wrong answers among those that are not in doubt, None if nothing was promised;
    covered: the share of images that are expected not to be. cut_short: whether time ran out. operating_point: the
    policy that another one chose among those of a front; None if none did.
    """

    prediction: Prediction
    because: str
    in_doubt: bool = False
    distance: float | None = None
    wrong_at_most: float | None = None
    covered: float | None = None
    cut_short: bool = False
    operating_point: str | None = None


class OutOfTime(Exception):  # noqa: N818  # a signal to the policy, not an error: by default the best so far is the answer
    """Thrown at a policy's yield when too little time is left for what it asked for."""


Steps = Generator[Run, tuple[Prediction, ...], Decision]


def run_or_fall_back(
    model: str, because: str, fallback: str | None
) -> Generator[Run, tuple[Prediction, ...], tuple[Prediction, str]]:
    """Run one model, or the fallback if that is unavailable; return what was said, and why it was asked."""
    try:
        (prediction,) = yield Run((model,), because)
    except ModelUnavailableError:
        if fallback in (None, model):
            raise
        because = f"{model} is unavailable; {fallback} is the fallback"
        (prediction,) = yield Run((fallback,), because)
    return prediction, because


class Policy(Protocol):
    """One way to choose; called once for each photograph."""

    @property
    def name(self) -> str:
        """How requests name it."""

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run."""

    @property
    def first(self) -> tuple[str, ...]:
        """The models of which it runs one before anything else: the cheapest of them bounds its time from below."""

    @property
    def features(self) -> tuple[str, ...]:
        """The features of the photograph that it reads, by their names in the table."""

    def __call__(self, photo: Evidence) -> Steps:
        """Start choosing for one photograph."""
