"""The premodel of Taylor et al. as a policy: similar calibration images decide which path (cascade) answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, ChainFacts, PolicyPart, Rung
from jetsel.base.errors import ModelUnavailableError
from jetsel.features import PAPER_SEVEN
from jetsel.policies.cascade import Cascade, check_rungs, rungs_of
from jetsel.policies.kind import Kind, Table, model_columns
from jetsel.policies.policy import Decision, Evidence, Policy, Steps
from jetsel.premodel import Chain, Neighbours, Scaling, fit_scaling, worthiest
from jetsel.premodel.paths import PRICES, PathTable, select_paths

NAME = "chain"
SEED = 2018
SAMPLE_IMAGES, SAMPLE_NEIGHBOURS = 1000, 101  # number of images that select the paths, and of neighbours of each


@dataclass(frozen=True, eq=False)
class ChainPolicy:
    """Policy that runs the path of the largest value: share of right answers on similar images minus price x cost.

    chain: finds similar images and the paths' results on them. paths: cascades. features: names of those that `chain`
    reads. price: accuracy that one ms, or mJ, must gain.
    """

    name: str
    chain: Chain
    paths: tuple[Cascade, ...]
    price: float
    features: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(dict.fromkeys(model for path in self.paths for model in path.models))

    @property
    def first_models(self) -> tuple[str, ...]:
        """The first model of each path."""
        return tuple(dict.fromkeys(path.models[0] for path in self.paths))

    @cached_property
    def average_best(self) -> int:
        """Index of the path of the largest value over all images."""
        return int(worthiest(self.chain.overall.right, self.chain.overall.cost, self.price))

    def __call__(self, photo: Evidence) -> Steps:
        """Run the best path for the image; if a model of it is unavailable, the best path without its models."""
        assert photo.features is not None
        estimates = self.chain.estimate(photo.features)
        values = estimates.right - self.price * estimates.cost
        while True:
            index = int(values.argmax())
            path, because = self.paths[index], self._because(estimates.right, index)
            try:
                decision = yield from path.climb(because)
            except ModelUnavailableError:
                values[[not set(path.models).isdisjoint(other.models) for other in self.paths]] = -np.inf
                if np.isneginf(values).all():
                    raise
                continue
            because = because if len(path.rungs) == 1 else f"{because}; {decision.because}"
            return Decision(decision.prediction, because, distance=estimates.distance)

    def _because(self, right: NDArray[np.float32], index: int) -> str:
        """Return the reason in words: on how many neighbours this path, and the path best on average, are right."""
        k, best = self.chain.k, self.average_best
        reason = f"of {k} neighbours, {self.paths[index]} is right on {k * right[index]:.0f}"
        return reason if index == best else f"{reason}, {self.paths[best]} on {k * right[best]:.0f}"


@dataclass(frozen=True, eq=False)
class LearnedPaths:
    """The paths and their results on n training images (`table`), and the features of these images, (n, f)."""

    models: tuple[str, ...]
    table: PathTable
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]

    def columns_of(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return the named features, (n, names)."""
        return self.features[:, [self.feature_names.index(name) for name in names]]


@dataclass(frozen=True)
class ChosenReading:
    """What cross-validation chose. place, front: indexes in PRICES, of `chain`, and of `chain:1` and so on."""

    features: tuple[str, ...]
    k: int
    place: int
    front: tuple[int, ...]


@dataclass(frozen=True)
class ChainKind(Kind):
    """Fits paths and stores images' features. One price is offered as `chain`, others as `chain:1` and so on.

    features: names of those by which neighbours may be found; None: all.
    """

    name = NAME
    features: tuple[str, ...] | None = None

    def learn(self, train: Table) -> LearnedPaths | None:
        """Select paths by neighbours in the paper's seven features; return None if there is only one model."""
        if len(train.models) < 2:
            return None
        seven = [name for name in PAPER_SEVEN if name in train.feature_names] or train.feature_names
        scaled = fit_scaling(train.columns_of(seven)).apply(train.columns_of(seven))
        rows = np.linspace(0, len(scaled) - 1, min(SAMPLE_IMAGES, len(scaled))).astype(int)
        near, _ = Neighbours(scaled).nearest_many(scaled[rows], min(SAMPLE_NEIGHBOURS, len(scaled)))
        # The order decides between equally near images, such as all images of one size, so it is drawn at random.
        drawn = np.random.default_rng(SEED).permutation(len(scaled))
        table = select_paths(train.outputs, near).take(drawn)
        names = train.feature_names if self.features is None else self.features
        return LearnedPaths(train.models, table, train.columns_of(names)[drawn], names)

    def to_part(self, learned: LearnedPaths, chosen: ChosenReading) -> PolicyPart:
        """Return the paths, the scaled features, and the result of each path on each image, as they are stored."""
        rows = learned.columns_of(chosen.features)
        scaling = fit_scaling(rows)
        models = learned.models
        paths = tuple(
            rungs_of([models[rung] for rung in path.rungs], path.thresholds[:-1]) for path in learned.table.paths
        )
        facts = ChainFacts(
            paths,
            chosen.features,
            min(chosen.k, len(rows)),
            float(PRICES[chosen.place]),
            tuple(PRICES[list(chosen.front)].tolist()),
        )
        arrays = {
            "minimum": scaling.minimum,
            "maximum": scaling.maximum,
            "points": scaling.apply(rows),
            "right": learned.table.right,
            "goes_on": learned.table.ran.sum(axis=2) > 1,
        }
        return PolicyPart(facts, arrays)

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return a policy for each stored price; all share the neighbours. Raises ValueError for a wrong part."""
        facts: ChainFacts = part.facts
        for rungs in facts.paths:
            check_rungs(self.name, rungs, calibration)
        scaling = Scaling(part.arrays["minimum"], part.arrays["maximum"])
        near = Neighbours(part.arrays["points"])
        goes_on = part.arrays["goes_on"]
        if near.points.shape[1] != len(facts.features):
            raise ValueError(f"its points have {near.points.shape[1]} features, not {len(facts.features)}")
        if goes_on.shape[1:] != (len(facts.paths),):
            raise ValueError(f"its images have columns for {goes_on.shape[-1]} paths, not {len(facts.paths)}")
        cost = np.stack(
            [_path_cost(rungs, later, calibration) for rungs, later in zip(facts.paths, goes_on.T, strict=True)], axis=1
        )
        chain = Chain(near, scaling, part.arrays["right"], cost, facts.k)
        paths, largest = tuple(Cascade(self.name, rungs) for rungs in facts.paths), calibration.cost_array.max()
        prices = {self.name: facts.price} | {f"{self.name}:{n}": price for n, price in enumerate(facts.prices, 1)}
        return {
            name: ChainPolicy(name, chain, paths, price / largest, facts.features) for name, price in prices.items()
        }


def _path_cost(rungs: Sequence[Rung], goes_on: NDArray[np.bool_], calibration: Calibration) -> NDArray[np.float32]:
    """Return the cost of a path on each image, (n,). goes_on: (n,), True if more models than the first run."""
    first, *later = calibration.cost_array[model_columns([rung.model for rung in rungs], calibration)].tolist()
    cost: NDArray[np.float32] = (first + goes_on * sum(later)).astype(np.float32)
    return cost
