"""A policy is a generator: it yields the models to run, is sent their predictions, and returns its answer."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError


class Prediction(Struct, frozen=True, eq=False):
    """The output of one model for one image.

    probabilities: (classes,) float32, at the calibrated temperature. confidence: the largest probability. embedding:
    the penultimate features, (width,) float32, None if the model gives none.
    """

    model: str
    probabilities: NDArray[np.float32]
    confidence: float
    embedding: NDArray[np.float32] | None = None

    @property
    def label(self) -> int:
        """Index of the most probable class."""
        return int(self.probabilities.argmax())


def best(predictions: list[Prediction]) -> Prediction:
    """Return the prediction to answer with if time runs out: the last, since policies run cheap models first."""
    return predictions[-1]


class Outlook(Struct, frozen=True):
    """Current estimates that a request's policy may use. Times are recent, in ms.

    budget_ms: time until the deadline, infinite if there is none. models_ms: mean and standard deviation of one run of
    each available model that fits the time left by waiting requests; for the edge server's models, their run there.
    network_ms: mean and deviation of the round trip, None if the image stays here. unavailable: model -> why it cannot
    run now. traffic_kb: 1,000 bytes sent and received for a model of the edge server. images_ms: median time for one
    image of a run on this device, which is shorter in batches. allowed_ms, allowed_mj: limits of the mean time and
    energy of each request that let waiting requests be answered in time and keep the power budget.
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
        """Return the usual time for one image of a model's run."""
        mean_ms = self.images_ms.get(model)
        return self.models_ms[model][0] if mean_ms is None else mean_ms


class Evidence(Struct, eq=False):
    """What a policy knows before any model runs. outlook: None without a deadline, unless requirements are set."""

    features: NDArray[np.float32] | None  # (features,), in the policy's order; None if the policy reads none
    fallback: str | None  # the model that answers doubtful images; None: reject them
    outlook: Outlook | None = None


class Run(Struct, frozen=True):
    """Requests one or more model runs and says which results to wait for.

    until: "all"; the "first" result; or the best result by the "deadline", with models ordered from worst to best, so
    that the wait ends when the last one answers. Unless all are awaited, unavailable models are skipped, and runs that
    are no longer needed are cancelled. held_ms: models here start this long before the deadline, if the edge server has
    not answered by then.
    """

    models: tuple[str, ...]
    because: str
    until: Literal["all", "first", "deadline"] = "all"
    held_ms: float | None = None


class Decision(Struct, frozen=True, eq=False):
    """A policy's answer. distance: to the neighbours that the policy used, if any.

    wrong_at_most: promised share of wrong answers among those not in doubt, None without a promise. covered: expected
    share of images not in doubt. cut_short: time ran out. operating_point: the policy that was selected from a front,
    None if there is no front.
    """

    prediction: Prediction
    because: str
    in_doubt: bool = False
    distance: float | None = None
    wrong_at_most: float | None = None
    covered: float | None = None
    cut_short: bool = False
    operating_point: str | None = None


class OutOfTime(Exception):  # noqa: N818  # a signal; the policy may answer with the best prediction
    """Thrown at a policy's yield if too little time is left for the requested run."""


Steps = Generator[Run, tuple[Prediction, ...], Decision]


def run_or_fall_back(
    model: str, because: str, fallback: str | None
) -> Generator[Run, tuple[Prediction, ...], tuple[Prediction, str]]:
    """Run a model, or the fallback if the model is unavailable; return the prediction and the reason for the run."""
    try:
        (prediction,) = yield Run((model,), because)
    except ModelUnavailableError:
        if fallback in (None, model):
            raise
        because = f"{model} is unavailable; {fallback} is the fallback"
        (prediction,) = yield Run((fallback,), because)
    return prediction, because


class Policy(Protocol):
    """One way to choose models; called once for each image."""

    @property
    def name(self) -> str:
        """Name in requests."""

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""

    @property
    def first(self) -> tuple[str, ...]:
        """The models that may run first. The cheapest of them is a lower bound of the policy's latency."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the image's features that the policy reads."""

    def __call__(self, photo: Evidence) -> Steps:
        """Start choosing for one image."""
