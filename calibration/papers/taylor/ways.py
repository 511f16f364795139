"""The premodels of Taylor et al. and what is tried beside them, as ways to choose: chains, priced readers, cascades.

`chain-right`, `cascade-skipping` and `boosted` were policies of jetsel once, and left it since they paid for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.papers.taylor.algorithm1 import optimum_votes, select_models
from calibration.papers.taylor.distances import elected
from calibration.papers.taylor.paper_chain import NAME, PAPER, PAPER_LINKS, ChainPlan
from calibration.papers.taylor.trials import Point, Way, one_model
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.features import PAPER_NAMES
from jetsel.policies.kind import Table
from jetsel.premodel import Neighbours, fit_scaling, worthiest
from jetsel.premodel.cascades import FittedCascade, replay_cascade

SKIP_K = 31
MANY = 101
MANY_NEIGHBOURS = f"{MANY} neighbours"
PRICES = np.geomspace(0.003, 1.0, 32)  # of the most expensive model's time, in shares of right answers
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of neighbours: when a first rung is skipped

Reader = Callable[[Recording, Recording, Sequence[str]], NDArray[np.float64]]
"""Images learned from, others, features -> how likely each model is right on each of the others, (n, m)."""


def cascade() -> Way:
    """The cascade that `jetsel calibrate` fits."""

    def tried(train: Recording, held: Recording) -> list[Point]:
        table, cascades = _cascades(train)
        outputs = held.table(dict(zip(train.models, table.temperatures, strict=True))).outputs
        ran = [replay_cascade(fitted, outputs)[1] for fitted in cascades]
        return [Point(one, np.zeros(len(one), bool)) for one in ran]

    return Way("cascade", 0.0, tried)


def single() -> Way:
    """Always one model."""

    def tried(_: Recording, held: Recording) -> list[Point]:
        n, m = len(held.classes), len(held.models)
        return [one_model(np.full(n, column), m, words=held.models[column]) for column in range(m)]

    return Way("a single model", 0.0, tried)


def chain(plan: ChainPlan, name: str = "chain") -> Way:
    """The chain of votes, in these features and with this number of neighbours.

    `chain-right` under that name: an image votes for every model that is right on it, and not for the cheapest alone.
    """

    def tried(train: Recording, held: Recording) -> list[Point]:
        right, costs = train.right, train.costs("time")
        links, _ = select_models(right, costs, train.models, plan.theta_points)
        columns = [train.models.index(model) for model in links][: PAPER_LINKS if name == NAME else None]
        votes = right[:, columns] if name == "chain-right" else optimum_votes(right[:, columns], costs[columns])
        link = elected(_nearest(train, held, plan.features, plan.k), votes)
        column = np.where(link < 0, len(train.models) - 1, np.array(columns)[link])
        return [one_model(column, len(train.models), link < 0)]

    return Way(name, plan.features_ms, tried)


def voting(links: Sequence[str], features_ms: float) -> Way:
    """The paper's chain over these models, the links: five neighbours in the seven features vote for the optimum."""

    def tried(train: Recording, held: Recording) -> list[Point]:
        columns = [train.models.index(model) for model in links]
        votes = optimum_votes(train.right[:, columns], train.costs("time")[columns])
        link = elected(_nearest(train, held, PAPER.features, PAPER.k), votes)
        column = np.where(link < 0, len(train.models) - 1, np.array(columns)[link])
        return [one_model(column, len(train.models), link < 0)]

    return Way("-".join(links), features_ms, tried)


def chain_paper(features_ms: float) -> Way:
    """The chain with the paper's settings: five neighbours, seven features, three links."""
    return chain(replace(PAPER, features_ms=features_ms), NAME)


def skipping(plan: ChainPlan) -> Way:
    """A cascade whose first rung is left out if fewer than a share of the neighbours satisfied it."""

    def tried(train: Recording, held: Recording) -> list[Point]:
        table, cascades = _cascades(train)
        temperatures = dict(zip(train.models, table.temperatures, strict=True))
        outputs, others = table.outputs, held.table(temperatures).outputs
        near = _nearest(train, held, plan.features, SKIP_K)
        points = []
        for fitted in cascades:
            confidence, _ = outputs.after(fitted.rungs[:1])
            share = (confidence >= fitted.thresholds[0])[near].mean(axis=1)
            _, whole = replay_cascade(fitted, others)
            later = whole
            if len(fitted.rungs) > 1:
                _, later = replay_cascade(FittedCascade(fitted.rungs[1:], fitted.thresholds[1:]), others)
            for least in SHARES:
                skips = share < least
                points.append(Point(np.where(skips[:, None], later, whole), np.zeros(len(skips), bool)))
        return points

    return Way("cascade-skipping", plan.features_ms, tried)


def priced(name: str, features: Sequence[str], features_ms: float, readers: Sequence[str]) -> Way:
    """Run the model of the largest P(right) less a price of its time, which a reader of features predicts.

    Its points are every reader at every price.
    """

    def tried(train: Recording, held: Recording) -> list[Point]:
        costs, points = train.costs("time"), list[Point]()
        for reader in readers:
            likely = (READERS | {MANY_NEIGHBOURS: neighbours})[reader](train, held, features)
            chosen = [worthiest(likely, costs, float(price)) for price in PRICES / costs.max()]
            points += [one_model(column, len(costs), words=reader) for column in chosen]
        return points

    return Way(name, features_ms, tried)


def strongest(features_ms: float) -> Way:
    """The strongest reader: of all features, by boosted trees or logistic regression, whichever the folds prefer."""
    return priced("priced reader of 29 features", PAPER_NAMES, features_ms, tuple(READERS))


def boosted(train: Recording, held: Recording, features: Sequence[str]) -> NDArray[np.float64]:
    """Boosted trees for each model."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def make() -> Any:
        return HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=8, learning_rate=0.08, early_stopping=False, random_state=2018
        )

    return _predicted(make, train, held, features)


def logistic(train: Recording, held: Recording, features: Sequence[str]) -> NDArray[np.float64]:
    """Logistic regression for each model."""
    from sklearn.linear_model import LogisticRegression

    return _predicted(lambda: LogisticRegression(max_iter=5000), train, held, features)


def neighbours(train: Recording, held: Recording, features: Sequence[str]) -> NDArray[np.float64]:
    """The share of many neighbours on which each model is right."""
    return train.right[_nearest(train, held, features, MANY)].mean(axis=1)


READERS: dict[str, Reader] = {"boosted trees": boosted, "logistic regression": logistic}


@lru_cache(maxsize=16)
def _cascades(train: Recording) -> tuple[Table, list[FittedCascade]]:
    """Return what was learned from, and the cascade for each budget; the same for both ways that have cascades."""
    table = train.table(fit_temperatures(train))
    return table, table.cascades


def _predicted(
    make: Callable[[], Any], train: Recording, held: Recording, features: Sequence[str]
) -> NDArray[np.float64]:
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    known, right = _columns(train, features), train.right
    scaling = fit_scaling(known)
    x, others = scaling.apply(known), scaling.apply(_columns(held, features))
    likely = np.zeros((len(others), right.shape[1]))
    with threadpool_limits(1):  # its threads wait for one another on a busy machine
        for column, truth in enumerate(right.T):
            if truth.all() or not truth.any():
                likely[:, column] = truth[0]
            else:
                likely[:, column] = make().fit(x, truth).predict_proba(others)[:, 1]
    return likely


def _columns(recording: Recording, features: Sequence[str]) -> NDArray[np.float32]:
    return recording.features[:, [recording.feature_names.index(name) for name in features]]


def _nearest(train: Recording, held: Recording, features: Sequence[str], k: int) -> NDArray[np.int64]:
    known = _columns(train, features)
    scaling = fit_scaling(known)
    near, _ = Neighbours(scaling.apply(known)).nearest_many(scaling.apply(_columns(held, features)), k)
    return near
