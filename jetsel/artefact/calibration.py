"""The content of a calibration: fitted policies of one family, the models they belong to, and image statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.artefact.promise import Promises, Share
from jetsel.base.errors import CalibrationError

BINS = 10


class FeatureBins(Struct, frozen=True):
    """Histogram of one feature over the calibration's images, to detect that later images differ.

    edges: inner edges of the bins, ascending. shares: share of the images in each bin.
    """

    edges: Annotated[tuple[float, ...], Meta(max_length=BINS - 1)]
    shares: Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], Meta(min_length=1, max_length=BINS)]

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.edges) + 1:
            raise ValueError("shares must have one entry more than edges")

    def bins_of(self, values: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return the bin index of each value, (n,)."""
        return np.searchsorted(np.asarray(self.edges), values, side="left")


class Confidence(Struct, frozen=True):
    """Mean and standard deviation of a model's confidence, over the images on which the default policy runs it."""

    mean: float
    deviation: float


class ExpectedStatistics(Struct, frozen=True):
    """Statistics of the calibration's images. features: by name. confidences: by model that the default policy ran."""

    features: dict[str, FeatureBins]
    confidences: dict[str, Confidence]


def fit_bins(values: NDArray[np.float32]) -> FeatureBins:
    """Return a histogram with a tenth of the (n,) values in each bin; fewer bins if values repeat, 3 for a constant."""
    if values.min() == values.max():
        constant = values.max()
        return FeatureBins((float(np.nextafter(constant, np.float32(-np.inf))), float(constant)), (0.0, 1.0, 0.0))
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf").astype(np.float64))
    edges = edges[edges < values.max()]
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return FeatureBins(tuple(edges.tolist()), tuple((counts / len(values)).tolist()))


ANSWERS = "answers.npz"
"""File beside a calibration: a condensed recording, from which thresholds are fitted to another machine's latencies."""

Name = Annotated[str, Meta(min_length=1)]
Positive = Annotated[float, Meta(gt=0)]
Unsigned = Annotated[float, Meta(ge=0)]


class BoundIdentities(Struct, frozen=True, eq=False, kw_only=True, forbid_unknown_fields=True):
    """What a recording or a calibration is valid for: one family, its labels, models and features."""

    family: Name
    labels_sha256: Name  # the family's identity
    identities: dict[Name, Name]  # model -> hash of its files (Manifest.identity), cheapest first
    feature_table: Name  # hash of the table of features in use
    decode_px: Annotated[int, Meta(ge=1)]  # the shorter side that images were decoded for
    features_px: Annotated[int, Meta(ge=1)]  # largest number of pixels that features are computed on


class CalibrationImages(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The images that a calibration was made from."""

    count: Annotated[int, Meta(ge=1)]  # without the `unknown` ones
    labels_from: Name | None = None  # the model whose answers serve as labels; None: real labels
    unknown: Annotated[int, Meta(ge=0)] = 0  # number of images of no class, on which promised error rates were tested


class MeasuredEnergy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Energies above idle power, measured during calibration."""

    mean_mj: dict[Name, Positive] = {}  # model -> mean energy of one run; empty: not measured
    half_width_mj: dict[Name, Unsigned] = {}  # model -> half of the mean's 95 % interval, if known
    chooser_mj: Positive | None = None  # energy of features and choice for one image
    reason: Name | None = None  # why energy was not measured, None if it was


class CalibrationFacts(BoundIdentities, frozen=True, eq=False, kw_only=True, forbid_unknown_fields=True):
    """All of a calibration but its fitted policies; stored as JSON."""

    images: CalibrationImages
    temperatures: dict[Name, Positive]  # model -> divisor of its logits
    costs_ms: dict[Name, Positive]  # model -> its mean latency when calibrated
    default_policy: Name  # 'cascade', 'chain', 'single:<model>', ...
    because: str  # reason for the default, one sentence with figures
    figures: dict[str, Any]  # measurements on the calibration set; any JSON
    created: str  # ISO date
    objective: Literal["time", "energy"] = "time"  # which cost the policies minimise
    energy: MeasuredEnergy = MeasuredEnergy()
    rival: Name | None = None  # the policy that the default had to beat on held-out images
    expected: ExpectedStatistics | None = None  # on the calibration's images; None: not stored
    machine: dict[str, Any] = {}  # state of the board during the measurements; empty: unknown
    promises: dict[Name, Promises] = {}  # policy -> error rates that it can promise
    wrong_at_most: Share | None = None  # error rate promised to requests by default; None: no promise

    @property
    def costs(self) -> dict[str, float]:
        """Model -> cost of one run: ms, or mJ if energy is the objective."""
        return self.energy.mean_mj if self.objective == "energy" else self.costs_ms

    @property
    def cost_array(self) -> NDArray[np.float64]:
        """`costs` as an array, (m,), in the models' order."""
        return np.array([self.costs[model] for model in self.identities])


@dataclass(frozen=True, eq=False)
class PolicyPart:
    """What a calibration stores of one policy. facts: of its type in FACTS_TYPES, as JSON. arrays: by name, as .npz."""

    facts: Any
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Calibration(CalibrationFacts, frozen=True, eq=False, kw_only=True):
    """A whole calibration of one family."""

    parts: dict[str, PolicyPart] = {}  # policy -> its fitted part; others are not offered

    @property
    def facts(self) -> CalibrationFacts:
        """The calibration without its fitted policies."""
        return CalibrationFacts(**{name: getattr(self, name) for name in CalibrationFacts.__struct_fields__})


def verify(calibration: Calibration) -> None:
    """Raise CalibrationError if models, costs and energies contradict each other."""
    models = calibration.identities.keys()
    if not models:
        raise contradiction("it names no model")
    for part in ("temperatures", "costs_ms"):
        if getattr(calibration, part).keys() != models:
            raise contradiction(f"{part} must name exactly its models")
    for part in ("mean_mj", "half_width_mj"):
        if getattr(calibration.energy, part).keys() not in (models, set()):
            raise contradiction(f"energy.{part} must name exactly its models, or none")
    if calibration.costs.keys() != models:
        raise contradiction("energy is its objective, and energy.mean_mj names no model")


def contradiction(what: str) -> CalibrationError:
    """Return the error for a calibration whose parts contradict each other. what: which, in words."""
    return CalibrationError(f"the calibration contradicts itself: {what}; recalibrate")


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One model of a cascade. Its answer is used if its confidence reaches the threshold, 0.0 for the last model."""

    model: Annotated[str, Meta(min_length=1)]
    threshold: Annotated[float, Meta(ge=0)]


class CascadeFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The stored cascades: each runs the models of its rungs in order until a rung accepts the answer.

    cascade: the policy `cascade`, rungs cheapest first. front: its other operating points, which trade accuracy for
    cost: `cascade:1` and so on, the most expensive first.
    """

    cascade: tuple[Rung, ...]
    front: tuple[tuple[Rung, ...], ...]


class ChainFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of the policy `chain`: paths (cascades) to select from by the k most similar calibration images.

    features: names of those that define similarity. price: share of right answers that the cost of the most expensive
    model must gain. prices: those of the other operating points, `chain:1` and so on, the most expensive first.
    """

    paths: tuple[tuple[Rung, ...], ...]
    features: Annotated[tuple[str, ...], Meta(min_length=1)]
    k: Annotated[int, Meta(ge=1)]
    price: Annotated[float, Meta(ge=0)]
    prices: tuple[Annotated[float, Meta(ge=0)], ...] = ()


class MultiplexerFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of `multiplexer`. price: probability of a right answer that 1 ms, or mJ, must add; 0: argmax."""

    price: Annotated[float, Meta(ge=0)]


FACTS_TYPES: Mapping[str, Any] = {"chain": ChainFacts, "cascade": CascadeFacts, "multiplexer": MultiplexerFacts}
"""Policy -> the type of its stored facts."""
