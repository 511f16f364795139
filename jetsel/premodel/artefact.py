"""The calibration artefact: everything that choosing for one family needs, and which models it belongs to."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.errors import CalibrationError
from jetsel.premodel.trees import Trees
from jetsel.premodel.trees import fault as trees_fault

Name = Annotated[str, Meta(min_length=1)]
Positive = Annotated[float, Meta(gt=0)]
Unsigned = Annotated[float, Meta(ge=0)]


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One rung of a cascade: its answer is taken where its confidence reaches the threshold; the last rung's is 0.0."""

    model: Name
    threshold: Annotated[float, Meta(ge=0)]


class Soundness(Struct, frozen=True, forbid_unknown_fields=True):
    """What a distance to the neighbours says of a chain's choice (section 6).

    limit: beyond it the choice is in doubt, None where no distance is. steps: (distance up to which, share of the
    choices there that were right), by growing distance; beyond the last, the last.
    """

    limit: float | None = None
    steps: tuple[tuple[float, float], ...] = ()

    def confidence(self, distance: float) -> float | None:
        """How often choices at this distance were right, None where nothing was fitted."""
        if not self.steps:
            return None
        place = bisect.bisect_left(self.steps, distance, key=lambda step: step[0])
        return self.steps[min(place, len(self.steps) - 1)][1]

    def is_far(self, distance: float) -> bool:
        """Whether this distance leaves the choice in doubt."""
        return self.limit is not None and distance > self.limit


class Skip(Struct, frozen=True, forbid_unknown_fields=True):
    """When a cascade's first rung is left out: fewer than `share` of the k nearest photographs had satisfied it."""

    k: Annotated[int, Meta(ge=1)]
    share: Annotated[float, Meta(ge=0, le=1)]


class Weighing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's chance of being right is weighed against its time, or its energy: one of the two prices is None.

    price_per_ms, price_per_mj: how much chance a millisecond, or a millijoule, must buy. k: neighbours asked, where
    chances are shares of neighbours.
    """

    price_per_ms: Annotated[float, Meta(ge=0)] | None = None
    k: Annotated[int, Meta(ge=1)] | None = None
    price_per_mj: Annotated[float, Meta(ge=0)] | None = None

    @property
    def price(self) -> float:
        """What one of the calibration's `costs` must buy."""
        return next((price for price in (self.price_per_ms, self.price_per_mj) if price is not None), 0.0)


class Facts(Struct, frozen=True, eq=False, kw_only=True, forbid_unknown_fields=True):
    """What a calibration says beside its arrays; stored as JSON."""

    family: Name
    labels_sha256: Name  # the family's identity
    model_sha256: dict[Name, Name]  # model -> hash of its ONNX file, cheapest first
    feature_table: Name  # hash of the table of features that these were computed with
    decode_px: Annotated[int, Meta(ge=1)]  # the shorter side that the photographs were decoded for
    features: tuple[Name, ...]  # those the premodel uses, in vector order
    k: Annotated[int, Meta(ge=1)]  # neighbours asked
    temperatures: dict[Name, Positive]  # model -> what divides its logits
    costs_ms: dict[Name, Positive]  # model -> its measured mean latency when the votes were made
    cascades: dict[Name, tuple[Rung, ...]]  # criterion -> rungs, cheapest first
    default_policy: dict[Name, Name]  # criterion -> 'cascade', 'chain', 'single:<model>', ...
    because: str  # why that default, one sentence with figures
    figures: dict[str, Any]  # what was measured on the calibration set; whatever JSON can say
    created: str  # ISO date
    # What a calibration may leave out: the policies that need it are then not offered.
    links: dict[Name, tuple[Name, ...]] = {}  # criterion -> the chain's models in order; left out: all, cheapest first
    soundness: dict[Name, Soundness] = {}  # criterion -> what the chain's distances say
    averaged: dict[Name, tuple[Rung, ...]] = {}  # criterion -> the cascade whose rungs answer together
    skip: dict[Name, Skip] = {}  # criterion -> when the cascade's first rung is left out
    embedding: dict[Name, Weighing] = {}  # criterion -> how the neighbours of the cheapest model's embedding decide
    boosted: dict[Name, Weighing] = {}  # criterion -> how the trees' chances decide
    labels_from: Name | None = None  # the model whose answers stood for labels: right means agreement with it
    objective: Literal["time", "energy"] = "time"  # what was to be saved, by which chains vote and chances are weighed
    energies_mj: dict[Name, Positive] = {}  # model -> mean energy of one run above idle power; empty: not measured
    energies_half_mj: dict[Name, Unsigned] = {}  # model -> half of that mean's 95 % interval, as far as it is known
    energy_reason: Name | None = None  # why it was not measured
    chooser_energy_mj: Positive | None = (
        None  # above idle power, of one photograph's features and a choice of the chain
    )
    rival: Name | None = None  # what the default policy had to beat on held-out photographs
    machine: dict[str, Any] = {}  # what the board said of itself when times and energies were measured; empty: unknown

    @property
    def costs(self) -> dict[str, float]:
        """What each model costs of the objective: ms, or mJ."""
        return self.energies_mj if self.objective == "energy" else self.costs_ms


class Calibration(Facts, frozen=True, eq=False, kw_only=True):
    """One family's calibration; n calibration photographs, f features, m models."""

    minimum: NDArray[np.float32]  # (f,) of each feature on the calibration photographs
    maximum: NDArray[np.float32]  # (f,)
    points: NDArray[np.float32]  # (n, f) scaled features
    right: dict[str, NDArray[np.bool_]]  # criterion -> (n, m), which model was right on which, in the models' order
    sure: dict[str, NDArray[np.bool_]] = {}  # criterion -> (n, 1), whether the cascade's first rung was sure
    embeddings: NDArray[np.float32] | None = None  # (n, width) of the cheapest model; stored as float16
    trees: dict[str, Trees] = {}  # criterion -> trees that give each model's chance from the features


def verify(calibration: Calibration) -> None:
    """Raise CalibrationError that names the first part of a calibration that does not fit the others."""
    models = tuple(calibration.model_sha256)
    n, f = len(calibration.points), len(calibration.features)
    criteria = set(calibration.right)
    _require(len(models) > 0, "it names no model")
    _require(0 < f == len(set(calibration.features)), "it needs at least one feature, and none twice")
    _require(set(calibration.temperatures) == set(models), "temperatures must name exactly its models")
    _require(set(calibration.costs_ms) == set(models), "costs_ms must name exactly its models")
    for part in ("energies_mj", "energies_half_mj"):
        _require(set(getattr(calibration, part)) in ({*models}, set()), f"{part} must name exactly its models, or none")
    _require(set(calibration.costs) == set(models), "energy is its objective, and energies_mj names no model")
    _require(1 <= calibration.k <= n, f"k is {calibration.k}, but it has {n} photographs")
    _require(calibration.minimum.shape == (f,) == calibration.maximum.shape, f"minimum and maximum must be ({f},)")
    _require(bool((calibration.minimum <= calibration.maximum).all()), "a minimum is above its maximum, or no number")
    _require(calibration.points.shape == (n, f), f"points must be (n, {f}), not {calibration.points.shape}")
    _require(all(np.isfinite(a).all() for a in _float_arrays(calibration)), "an array holds a value that is not finite")
    in_range = calibration.points.min() >= 0 and calibration.points.max() <= 1
    _require(in_range, "its points must be scaled: each from 0 to 1, since minimum and maximum are their own")
    _require(len(criteria) > 0, "it was made for no criterion")
    _require(set(calibration.cascades) == criteria, "cascades must name exactly the criteria of right")
    _require(set(calibration.default_policy) == criteria, "default_policy must name exactly the criteria of right")
    for criterion, table in calibration.right.items():
        _require(table.shape == (n, len(models)), f"right[{criterion!r}] must be {(n, len(models))}, not {table.shape}")
    for kind, fitted in (("cascade", calibration.cascades), ("averaged cascade", calibration.averaged)):
        for criterion, rungs in fitted.items():
            whole = bool(rungs) and rungs[-1].threshold == 0.0
            _require(whole, f"the last rung of {criterion}'s {kind} must accept all")
            _require_known([rung.model for rung in rungs], models, f"{criterion}'s {kind}")
    _verify_optional(calibration, n, models, criteria)


def _verify_optional(calibration: Calibration, n: int, models: tuple[str, ...], criteria: set[str]) -> None:
    """The same for what a calibration may leave out."""
    parts = ("links", "soundness", "averaged", "skip", "embedding", "boosted")
    for part in parts:
        _require(set(getattr(calibration, part)) <= criteria, f"{part} names a criterion that right does not know")
    for criterion, links in calibration.links.items():
        _require(bool(links) and len(set(links)) == len(links), f"{criterion}'s chain needs models, and none twice")
        _require_known(links, models, f"{criterion}'s chain")
    _require(set(calibration.sure) == set(calibration.skip), "sure and skip must name the same criteria")
    for criterion, skip in calibration.skip.items():
        _require(calibration.sure[criterion].shape == (n, 1), f"sure[{criterion!r}] must be {(n, 1)}")
        _require(skip.k <= n, f"skip asks {skip.k} neighbours, but it has {n} photographs")
    if calibration.embedding:
        near = calibration.embeddings
        _require(near is not None and near.ndim == 2 and len(near) == n, f"embeddings must be ({n}, width)")
        _require(near is not None and bool(np.isfinite(near).all()), "an array holds a value that is not finite")
        asked = [weighing.k for weighing in calibration.embedding.values()]
        _require(all(k is not None and k <= n for k in asked), f"embedding asks {asked} neighbours of {n} photographs")
    by_energy = calibration.objective == "energy"
    for weighing in (*calibration.embedding.values(), *calibration.boosted.values()):
        priced = [weighing.price_per_ms is not None, weighing.price_per_mj is not None]
        _require(
            priced == [not by_energy, by_energy], f"a weighing has no price, or not one of {calibration.objective}"
        )
    _require(set(calibration.trees) == set(calibration.boosted), "trees and boosted must name the same criteria")
    for criterion, trees in calibration.trees.items():
        fault = trees_fault(trees, len(calibration.features), len(models))
        _require(fault is None, f"the trees of {criterion}: {fault}")


def _require_known(named: Sequence[str], models: tuple[str, ...], what: str) -> None:
    unknown = set(named) - set(models)
    _require(not unknown, f"{what} names {', '.join(sorted(unknown))}, which it does not know")


def check(
    calibration: Calibration,
    labels_sha256: str,
    model_sha256: Mapping[str, str],
    feature_table: str,
    decode_px: int,
) -> None:
    """Refuse a calibration that was made for other labels, models, features or pixels than those served.

    model_sha256: model -> hash of its ONNX file, as served. A served model that the calibration does not know is no
    fault: the premodel never chooses it. Raises CalibrationError that names each difference and the repair.
    """
    differences = []
    if calibration.labels_sha256 != labels_sha256:
        differences.append(_differ("its labels", calibration.labels_sha256, labels_sha256))
    if calibration.feature_table != feature_table:
        differences.append(_differ("its table of features", calibration.feature_table, feature_table))
    if calibration.decode_px != decode_px:
        differences.append(f"photographs were decoded for {calibration.decode_px} px, now for {decode_px}")
    for model, made_for in calibration.model_sha256.items():
        if model not in model_sha256:
            differences.append(f"model {model} is not there")
        elif model_sha256[model] != made_for:
            differences.append(_differ(f"model {model}", made_for, model_sha256[model]))
    if differences:
        raise CalibrationError(
            f"the calibration of family {calibration.family} does not belong to what is served: "
            f"{'; '.join(differences)}. Recalibrate, or put back what it was made for"
        )


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CalibrationError(f"the calibration contradicts itself: {otherwise}; recalibrate")


def _float_arrays(calibration: Calibration) -> tuple[NDArray[np.float32], ...]:
    return calibration.minimum, calibration.maximum, calibration.points


def _differ(what: str, made_for: str, served: str) -> str:
    return f"{what} had hash {made_for[:12]}, now {served[:12]}"
