"""Boosted trees over the photograph's features that name the model which is most worth what it costs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jetsel.policies.kind import Kind, Part, Plan, Table, Tried
from jetsel.policies.policy import Decision, Evidence, Policy, Steps, run_or_fall_back
from jetsel.policies.weighing import Weigher, Weighing, weighed
from jetsel.premodel import Trees, chances
from jetsel.premodel.trees import DTYPES, check
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

ROUNDS = 40
LEAVES = 8
LEARNING_RATE = 0.08
SEED = 2018


@dataclass(frozen=True)
class BoostedPolicy(Weigher):
    """Boosted trees over the photograph's features name the model that is most worth what it costs."""

    @property
    def first(self) -> tuple[str, ...]:
        """Any of them may be the one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose, run, answer; where the chosen one is unavailable, the fallback."""
        assert photo.features is not None
        best, because = self.choose(photo.features)
        seen, because = yield from run_or_fall_back(best, because, photo.fallback)
        return Decision(seen, because)


@dataclass(frozen=True, eq=False)
class _Learned:
    """The trees, the features that they compare, and the prices to try."""

    trees: Trees
    features: tuple[str, ...]
    prices: NDArray[np.float64]


class BoostedKind(Kind):
    """Learned are trees; tried is each price. Their arrays are stored as CRITERION.NAME."""

    name = "boosted"
    facts = Weighing
    reads_features = True

    def learn(self, train: Table, plan: Plan) -> _Learned | None:
        """Grow the trees; None where scikit-learn is not installed."""
        trees = grow(train.of(plan.features), train.right)
        return None if trees is None else _Learned(trees, plan.features, train.prices)

    def tried(self, learned: _Learned, held: Table) -> list[Tried]:
        """One point for each price."""
        likely = np.stack([chances(learned.trees, x) for x in held.of(learned.features)])
        return [weighed(likely, held.costs, price, held) for price in learned.prices]

    def fitted(self, learned: Mapping[Criterion, _Learned], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the trees and the price of each criterion."""
        weighings = {criterion: Weighing(float(one.prices[chosen[criterion]])) for criterion, one in learned.items()}
        return Part(
            weighings,
            {f"{criterion}.{name}": a for criterion, one in learned.items() for name, a in one.trees._asdict().items()},
        )

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """One policy a criterion, over the features that the chain reads too."""
        models, features = tuple(calibration.model_sha256), calibration.features
        made: dict[Criterion, Policy] = {}
        for criterion, weighing in part.facts.items():
            trees = Trees(**{name: part.arrays[f"{criterion}.{name}"].astype(DTYPES[name]) for name in DTYPES})
            check(trees, len(features), len(models))
            likely = functools.partial(chances, trees)
            made[criterion] = BoostedPolicy(self.name, models, likely, calibration.cost_array, weighing.price, features)
        return made


def grow(features: NDArray[np.float32], right: NDArray[np.bool_]) -> Trees | None:
    """Fit gradient-boosted trees for each model and return them as arrays; None without scikit-learn.

    features: (n, f) float32, not scaled. right: (n, m). A model that is always, or never, right gets no trees.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    except ImportError:
        return None
    nodes: list[NDArray[np.void]] = []
    roots, models, baseline = [], [], []
    begin = 0
    for model in range(right.shape[1]):
        share = float(np.clip(right[:, model].mean(), 1e-6, 1 - 1e-6))
        if right[:, model].all() or not right[:, model].any():
            baseline.append(np.log(share / (1 - share)))
            continue
        with threadpool_limits(1):  # its threads wait for one another, and take long on a machine with other work
            grown = HistGradientBoostingClassifier(
                max_iter=ROUNDS,
                max_leaf_nodes=LEAVES,
                learning_rate=LEARNING_RATE,
                early_stopping=False,  # over 10,000 photographs it would, and fails where a model is right on one alone
                random_state=SEED,
            ).fit(features, right[:, model])
        baseline.append(float(grown._baseline_prediction.ravel()[0]))
        for (predictor,) in grown._predictors:
            nodes.append(_placed(predictor.nodes, begin))
            roots.append(begin)
            models.append(model)
            begin += len(predictor.nodes)
    if not nodes:
        nodes.append(np.zeros(1, _NODE))
    whole = np.concatenate(nodes)
    return Trees(
        **{name: whole[name] for name in _NODE.fields or ()},
        root=np.array(roots, "<i4"),
        model=np.array(models, "<i2"),
        baseline=np.array(baseline, "<f4"),
    )


_NODE = np.dtype([("feature", "<i2"), ("threshold", "<f8"), ("left", "<i4"), ("right", "<i4"), ("value", "<f4")])


def _placed(nodes: NDArray[np.void], begin: int) -> NDArray[np.void]:
    """One tree of scikit-learn's as rows of the common table from `begin` on; a leaf leads to itself."""
    here = begin + np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    placed = np.zeros(len(nodes), _NODE)
    placed["feature"] = np.where(leaf, 0, nodes["feature_idx"])
    placed["threshold"] = np.where(leaf, 0.0, nodes["num_threshold"])
    placed["left"] = np.where(leaf, here, begin + nodes["left"])
    placed["right"] = np.where(leaf, here, begin + nodes["right"])
    placed["value"] = np.where(leaf, nodes["value"], 0.0)
    return placed
