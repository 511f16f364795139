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


def best_so_far(predictions: list[Prediction]) -> Prediction:
    """Return the prediction to answer with if time runs out: the last, as policies run better models later."""
    return predictions[-1]


class Outlook(Struct, frozen=True):
    """Current estimates for one request, from recent runs, that its policy may use.

    budget_ms: time until the deadline, infinite if there is none. models_ms: mean and standard deviation of one run of
    each model that can run now, in the time that waiting requests leave; without the network for the edge server's.
    network_ms: mean and deviation of the round trip to the edge server, None if the image stays here. unavailable:
    model -> why it cannot run now. traffic_kb: model of the edge server -> 1,000 bytes sent and received. images_ms:
    model -> median time for each image of a run, which is shorter in batches. allowed_ms, allowed_mj: limits of the
    mean time and energy of each request that let waiting requests be answered in time and keep the power budget.
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
        """Return the usual time of a model for one image, alone or in batches."""
        mean_ms = self.images_ms.get(model)
        return self.models_ms[model][0] if mean_ms is None else mean_ms


class Evidence(Struct, eq=False):
    """What a policy knows of a request before any model runs. outlook: None without a deadline and requirements."""

    features: NDArray[np.float32] | None  # (features,), in the policy's order; None if the policy reads none
    fallback: str | None  # the model that answers doubtful images; None: reject them
    outlook: Outlook | None = None


class Run(Struct, frozen=True):
    """What a policy yields: a request to run these models on the image, and to wait for results.

    because: the reason, for people. until: wait for "all" results, the "first", or the best by the "deadline"; models
    are then ordered from worst to best, and the wait ends when the last one answers. With "first" and "deadline",
    unavailable models are skipped, and runs that are no longer needed are cancelled. held_ms, with "deadline" and a
    model of the edge server: local models start this long before the deadline, unless it has answered; None: at once.
    """

    models: tuple[str, ...]
    because: str
    until: Literal["all", "first", "deadline"] = "all"
    held_ms: float | None = None


class Decision(Struct, frozen=True, eq=False):
    """A policy's answer. because: the reason, for people. distance: to the similar images that the policy used, if any.

    in_doubt: True if the answer may break the promise of wrong_at_most, the calibrated share of wrong answers among the
    others; None without a promise. covered: expected share of images not in doubt. cut_short: True if time ran out.
    operating_point: name of the policy that was selected among several, None if there was no choice.
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
    """Run a model, or if it is unavailable the fallback; return prediction and reason. Raises ModelUnavailableError."""
    try:
        (prediction,) = yield Run((model,), because)
    except ModelUnavailableError:
        if fallback in (None, model):
            raise
        because = f"{model} is unavailable; {fallback} is the fallback"
        (prediction,) = yield Run((fallback,), because)
    return prediction, because


class Policy(Protocol):
    """A way to choose models for an image. A call starts the choice for one image, a generator of runs to do."""

    @property
    def name(self) -> str:
        """Name in requests, such as `cascade:1`."""

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""

    @property
    def first_models(self) -> tuple[str, ...]:
        """The models that may run first, to bound the policy's latency from below; () if none needs to run here."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the image's features that the policy reads."""

    def __call__(self, photo: Evidence) -> Steps:
        """Return a generator that yields runs, is sent their predictions, and returns the decision."""
