"""Grows the boosted trees that say from a photograph's features how likely each model is right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel import Trees

ROUNDS = 40
LEAVES = 8
LEARNING_RATE = 0.08
SEED = 2018


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
        feature=whole["feature"],
        threshold=whole["threshold"],
        left=whole["left"],
        right=whole["right"],
        value=whole["value"],
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
