"""How well techniques tell which model is right on an image, each tuned by a random search in folds over all images.

Figures 9 and 10 of Taylor et al. compare KNN, decision trees, SVM and a convolutional network as large as MobileNet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 4  # settings that are tried of each technique
FOLDS = 3  # in which a setting is judged
SEED = 2018
COMPONENTS = 300  # of the kernel of an SVM

Regressor = Any  # fit(x (n, f), y (n, m)) and predict(x) -> (n, m)
SEVEN, ALL, EMBEDDING = "the seven", "29 features", "embedding"


@dataclass(frozen=True)
class Technique:
    """One technique. reads: what it sees of an image. tried: values of each setting."""

    name: str
    reads: str
    make: Callable[..., Regressor]
    tried: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What the best setting says, as probabilities: held_out (n, m) of the images that taught, others (k, m)."""

    setting: str
    held_out: NDArray[np.float64]
    others: NDArray[np.float64]


class Margins:
    """A support vector machine for each column, with a radial kernel: predict returns how far a row is from its border.

    The kernel is approximated by the rows of COMPONENTS images (Nystroem), so that thousands of images can teach.
    """

    def __init__(self, gamma: float, **settings: Any) -> None:
        self._gamma, self._settings = gamma, settings

    def fit(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> Margins:
        """Fit each column of y, which has both values."""
        from sklearn.kernel_approximation import Nystroem
        from sklearn.svm import LinearSVC

        self._kernel = Nystroem(gamma=self._gamma, n_components=COMPONENTS, random_state=SEED).fit(x)
        near = self._kernel.transform(x)
        self._each = [LinearSVC(dual=False, **self._settings).fit(near, one > 0.5) for one in y.T]
        return self

    def predict(self, x: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the distances, (n, m), positive for yes."""
        near = self._kernel.transform(x)
        return np.stack([one.decision_function(near) for one in self._each], axis=1)


def techniques() -> list[Technique]:
    """Return every technique of Figure 9, and a forest."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.tree import DecisionTreeRegressor

    def forest(**settings: Any) -> Regressor:
        return RandomForestRegressor(100, max_samples=0.5, random_state=SEED, **settings)

    def tree(**settings: Any) -> Regressor:
        return DecisionTreeRegressor(random_state=SEED, **settings)

    near = {"n_neighbors": (5, 11, 31, 101, 301, 601), "weights": ("uniform", "distance")}
    leaves = {"min_samples_leaf": (5, 10, 20, 50, 100, 200)}
    return [
        Technique("KNN", SEVEN, KNeighborsRegressor, near),
        Technique("KNN", ALL, KNeighborsRegressor, near),
        Technique("decision tree", ALL, tree, leaves | {"max_features": (None, 0.5)}),
        Technique("forest", ALL, forest, leaves | {"max_features": (0.2, 0.4, 0.7)}),
        Technique("SVM", ALL, Margins, {"C": (0.1, 0.3, 1, 3, 10), "gamma": (0.003, 0.01, 0.03, 0.1, 0.3)}),
        Technique("network", EMBEDDING, Ridge, {"alpha": (10.0, 100.0, 1e3, 1e4, 1e5)}),
    ]


def tuned(
    technique: Technique,
    x: NDArray[np.floating],
    y: NDArray[np.bool_],
    fold_of: NDArray[np.int64],
    others: NDArray[np.floating],
) -> Tuned:
    """Return what a technique's best setting says of images that it was not fitted on.

    x: (n, f). y: (n, m), each column with both values. fold_of: (n,). others: (k, f). The best has the least log loss
    in folds; what it says becomes a probability by logistic regression on what it said of held-out images (Platt).
    """
    from sklearn.metrics import log_loss
    from sklearn.model_selection import ParameterSampler
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    scaler, due = StandardScaler().fit(x), y.astype(np.float32)
    x, others = scaler.transform(x), scaler.transform(others)
    least, best = np.inf, None
    with threadpool_limits(1):  # several threads wait for one another on a busy machine
        for setting in ParameterSampler(technique.tried, DRAWS, random_state=SEED):
            said = np.zeros(y.shape)
            for fold in range(FOLDS):
                held = fold_of % FOLDS == fold
                said[held] = technique.make(**setting).fit(x[~held], due[~held]).predict(x[held])
            likely = _probable(said, y, said)
            truths = y.T.astype(int)  # scikit-learn 1.4 misreads bool
            loss = float(np.mean([log_loss(truth, one) for truth, one in zip(truths, likely.T, strict=True)]))
            if loss < least:
                least, best = loss, (setting, said, likely)
        assert best is not None
        setting, said, likely = best
        other = technique.make(**setting).fit(x, due).predict(others)
    words = ", ".join(f"{name} = {value}" for name, value in setting.items())
    return Tuned(words, likely, _probable(said, y, other))


def _probable(said: NDArray[np.float64], y: NDArray[np.bool_], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return other (k, m) as probabilities, by what was said (n, m) where y (n, m) is known."""
    from sklearn.linear_model import LogisticRegression

    columns = [
        LogisticRegression().fit(one[:, None], truth).predict_proba(new[:, None])[:, 1]
        for one, truth, new in zip(said.T, y.T, other.T, strict=True)
    ]
    return np.stack(columns, axis=1)
