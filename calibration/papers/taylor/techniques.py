"""Figures 9 and 10 of Taylor et al.: the premodel as KNN, decision tree and SVM, one for all or one for each level."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TECHNIQUES = ("KNN", "DT", "SVM")
LEVELS = 3  # of the hierarchical premodel (section 5.2, Figure 10)
TRAINED_ON = 2000  # photographs: an SVM's training grows with the square of their number
TIMED = 200  # single predictions

Classifier = Any  # scikit-learn's: fit(x, y) and predict(x)


@dataclass(frozen=True)
class Alternative:
    """One way to build the premodel. accuracy: share of right answers. time_ms: features, choice and the model chosen.

    choice_ms: of features and choice alone.
    """

    name: str
    accuracy: float
    time_ms: float
    choice_ms: float


def compare_techniques(
    features: NDArray[np.float32],
    votes: NDArray[np.bool_],
    right: NDArray[np.bool_],
    spent_ms: NDArray[np.float64],
    fold_of: NDArray[np.int64],
    k: int,
    features_ms: float,
    fallback: int,
) -> list[Alternative]:
    """Return Figure 9 (one technique chooses among all models) and Figure 10 (X.Y.Z: one for each level).

    features: (n, f), scaled. votes, right: (n, m), the optimum and who is right, in the chain's order; spent_ms: (m,)
    what each costs. In doubt the column `fallback` answers. Each technique is trained on at most 2,000 photographs of
    the other folds. Raises ImportError where scikit-learn is missing.
    """
    makers = _makers(k)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    levels = min(LEVELS, votes.shape[1])
    optimum = np.where(votes.any(axis=1), votes.argmax(axis=1), fallback)
    asked = [optimum, *votes.T[:levels]]  # which model, and for each level: is it this one
    # Several threads wait for one another: on a busy machine, for 100 times as long as a choice takes.
    with threadpool_limits(1):
        answers, times_ms = _held_out(makers, features, asked, fold_of)
    flat = {name: answers[name][0] for name in makers}
    flat_ms = {name: times_ms[name][0] for name in makers}
    yes = {name: answers[name][1:].astype(bool).T for name in makers}
    level_ms = {name: list(itertools.chain(*times_ms[name][1:])) for name in makers}
    rows = np.arange(len(features))

    def alternative(name: str, chosen: NDArray[np.int64], choice_ms: float) -> Alternative:
        whole_ms = float(spent_ms[chosen].mean()) + features_ms + choice_ms
        return Alternative(name, float(right[rows, chosen].mean()), whole_ms, features_ms + choice_ms)

    found = [alternative(name, flat[name], float(np.median(flat_ms[name]))) for name in makers]
    for mix in itertools.product(makers, repeat=levels):
        votes_of_mix = np.stack([yes[name][:, level] for level, name in enumerate(mix)], axis=1)
        chosen = np.where(votes_of_mix.any(axis=1), votes_of_mix.argmax(axis=1), fallback)
        found.append(alternative(".".join(mix), chosen, _mix_ms(mix, level_ms)))
    return found


def _held_out(
    makers: Mapping[str, Callable[[], Classifier]],
    features: NDArray[np.float32],
    asked: Sequence[NDArray[Any]],
    fold_of: NDArray[np.int64],
) -> tuple[dict[str, NDArray[np.int64]], dict[str, list[list[float]]]]:
    """Each technique's answers to each question, (questions, n), and each question's times of one answer in ms."""
    answers = {name: np.zeros((len(asked), len(features)), np.int64) for name in makers}
    times_ms: dict[str, list[list[float]]] = {name: [[] for _ in asked] for name in makers}
    for fold in np.unique(fold_of):
        held, rest = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        train = np.random.default_rng(int(fold)).permutation(rest)[:TRAINED_ON]
        for (name, make), (place, truth) in itertools.product(makers.items(), enumerate(asked)):
            chooser = _fitted(make, features[train], truth[train])
            answers[name][place, held] = chooser.predict(features[held])
            times_ms[name][place].append(_single_ms(chooser, features[held]))
    return answers, times_ms


def _mix_ms(mix: Sequence[str], level_ms: Mapping[str, list[float]]) -> float:
    """What the levels take together; all that are KNN look for their neighbours once (section 5.2)."""
    knn = float(np.median(level_ms["KNN"])) if "KNN" in mix else 0.0
    return knn + sum(float(np.median(level_ms[name])) for name in mix if name != "KNN")


def _makers(k: int) -> dict[str, Callable[[], Classifier]]:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    makers = (
        lambda: KNeighborsClassifier(k, algorithm="brute"),
        lambda: DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
        lambda: SVC(),
    )
    return dict(zip(TECHNIQUES, makers, strict=True))


def _fitted(make: Callable[[], Classifier], x: NDArray[np.float32], y: NDArray[Any]) -> Classifier:
    if (y == y[0]).all():
        return _Constant(y[0])
    return make().fit(x, y)


class _Constant:
    """What there is to say where training knew one answer alone: most classifiers refuse to be fitted then."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def predict(self, x: NDArray[np.float32]) -> NDArray[Any]:
        """The one answer for each row."""
        return np.full(len(x), self._answer)


def _single_ms(chooser: Classifier, x: NDArray[np.float32]) -> float:
    """The median time of one prediction, as one photograph needs it."""
    times = []
    for row in x[: TIMED // 10]:
        began = time.thread_time()
        chooser.predict(row[None])
        times.append((time.thread_time() - began) * 1e3)
    return float(np.median(times))
