"""A calibration: what choosing for one family needs, which models it belongs to, and the images that it expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.artefact.promise import Promises, Share
from jetsel.base.errors import CalibrationError

BINS = 10


class Bins(Struct, frozen=True):
    """One feature: inner edges, ascending, and the share of the calibration's photographs in each bin, one more."""

    edges: Annotated[tuple[float, ...], Meta(max_length=BINS - 1)]
    shares: Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], Meta(min_length=1, max_length=BINS)]

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.edges) + 1:
            raise ValueError("shares must have one entry more than edges")

    def of(self, values: NDArray[np.float32]) -> NDArray[np.intp]:
        """The bin of each value, (n,)."""
        return np.searchsorted(np.asarray(self.edges), values, side="left")


class Confidence(Struct, frozen=True):
    """A model's confidence if the default policy ran it: its mean, and its standard deviation over photographs."""

    mean: float
    deviation: float


class ExpectedStatistics(Struct, frozen=True):
    """features: by name. confidences: by model, of those that the default policy ran."""

    features: dict[str, Bins]
    confidences: dict[str, Confidence]


def bins_of(values: NDArray[np.float32]) -> Bins:
    """Return tenths of these (n,) values; fewer bins if many values are the same; below, at and above a constant."""
    if values.min() == values.max():
        constant = values.max()
        return Bins((float(np.nextafter(constant, np.float32(-np.inf))), float(constant)), (0.0, 1.0, 0.0))
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf").astype(np.float64))
    edges = edges[edges < values.max()]
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return Bins(tuple(edges.tolist()), tuple((counts / len(values)).tolist()))


ANSWERS = "answers.npz"
"""Beside a calibration that ships: what every model said, by which it is fitted to another machine's times."""

Name = Annotated[str, Meta(min_length=1)]
Positive = Annotated[float, Meta(gt=0)]
Unsigned = Annotated[float, Meta(ge=0)]


class CalibrationFacts(Struct, frozen=True, eq=False, kw_only=True, forbid_unknown_fields=True):
    """What a calibration says beside its arrays and its policies' parts; stored as JSON."""

    family: Name
    labels_sha256: Name  # the family's identity
    identities: dict[Name, Name]  # model -> Manifest.identity, cheapest first
    feature_table: Name  # hash of the table of features that these were computed with
    decode_px: Annotated[int, Meta(ge=1)]  # the shorter side that the photographs were decoded for
    features_px: Annotated[int, Meta(ge=1)]  # the pixels of a photograph that features see at most
    photographs: Annotated[int, Meta(ge=1)]  # how many it was made from
    temperatures: dict[Name, Positive]  # model -> what divides its logits
    costs_ms: dict[Name, Positive]  # model -> its measured mean latency when the votes were made
    default_policy: Name  # 'cascade', 'chain', 'single:<model>', ...
    because: str  # why that default, one sentence with figures
    figures: dict[str, Any]  # what was measured on the calibration set; whatever JSON can say
    created: str  # ISO date
    labels_from: Name | None = None  # the model whose answers stood for labels: right means agreement with it
    objective: Literal["time", "energy"] = "time"  # what was to be saved, by which chains vote and chances are weighed
    energies_mj: dict[Name, Positive] = {}  # model -> mean energy of one run above idle power; empty: not measured
    energies_half_mj: dict[Name, Unsigned] = {}  # model -> half of that mean's 95 % interval, as far as it is known
    energy_reason: Name | None = None  # why it was not measured
    chooser_energy_mj: Positive | None = None  # above idle power, of one photograph's features and a choice
    rival: Name | None = None  # what the default policy had to beat on held-out photographs
    expected: ExpectedStatistics | None = None  # how features and confidences lay on its photographs; None: not kept
    machine: dict[str, Any] = {}  # what the board said of itself when times and energies were measured; empty: unknown
    promises: dict[Name, Promises] = {}  # policy -> what it promises of its errors
    wrong_at_most: Share | None = None  # what requests of this family ask for unless they say; None: nothing
    unknown_images: Annotated[int, Meta(ge=0)] = 0  # of nothing that the family knows, by which promises were looked at

    @property
    def costs(self) -> dict[str, float]:
        """What each model costs of the objective: ms, or mJ."""
        return self.energies_mj if self.objective == "energy" else self.costs_ms

    @property
    def cost_array(self) -> NDArray[np.float64]:
        """The same as an array, (m,), in the models' order."""
        return np.array([self.costs[model] for model in self.identities])


@dataclass(frozen=True, eq=False)
class Part:
    """What a calibration stores of one policy. facts: of its kind's type, for JSON. arrays: by name."""

    facts: Any
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Calibration(CalibrationFacts, frozen=True, eq=False, kw_only=True):
    """One family's calibration."""

    parts: dict[str, Part] = {}  # policy -> what was fitted for it; one that is not here is not offered


def verify(calibration: Calibration) -> None:
    """Raise CalibrationError that names the first part of a calibration that does not fit the others."""
    models = calibration.identities.keys()
    if not models:
        raise contradiction("it names no model")
    for part in ("temperatures", "costs_ms"):
        if getattr(calibration, part).keys() != models:
            raise contradiction(f"{part} must name exactly its models")
    for part in ("energies_mj", "energies_half_mj"):
        if getattr(calibration, part).keys() not in (models, set()):
            raise contradiction(f"{part} must name exactly its models, or none")
    if calibration.costs.keys() != models:
        raise contradiction("energy is its objective, and energies_mj names no model")


def contradiction(what: str) -> CalibrationError:
    """Return the error for parts of a calibration that do not fit each other."""
    return CalibrationError(f"the calibration contradicts itself: {what}; recalibrate")


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One rung of a cascade: its answer is taken if its confidence reaches the threshold; the last rung's is 0.0."""

    model: Annotated[str, Meta(min_length=1)]
    threshold: Annotated[float, Meta(ge=0)]


class Cascades(Struct, frozen=True, forbid_unknown_fields=True):
    """The rungs of `cascade`, and of each other operating point, the most expensive first."""

    cascade: tuple[Rung, ...]
    front: tuple[tuple[Rung, ...], ...]


class Paths(Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of a chain, the features in which neighbours are near, and how many of them are asked.

    price: of the most expensive model's cost, in shares of right answers. prices: of other operating points, the most
    expensive point first.
    """

    paths: tuple[tuple[Rung, ...], ...]
    features: Annotated[tuple[str, ...], Meta(min_length=1)]
    k: Annotated[int, Meta(ge=1)]
    price: Annotated[float, Meta(ge=0)]
    prices: tuple[Annotated[float, Meta(ge=0)], ...] = ()


class Priced(Struct, frozen=True, forbid_unknown_fields=True):
    """How much chance a millisecond, or a millijoule if that is the objective, must buy; 0 is the paper's argmax."""

    price: Annotated[float, Meta(ge=0)]


FACTS: Mapping[str, Any] = MappingProxyType({"chain": Paths, "cascade": Cascades, "multiplexer": Priced})
"""Policy -> the type of what is stored of it beside its arrays."""
