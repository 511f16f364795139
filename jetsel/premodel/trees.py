"""Boosted decision trees as plain arrays: how likely each model is right, from the features of a photograph."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEEPEST = 64  # levels; a deeper walk is a circle


class Trees(NamedTuple):
    """All trees of all models, their nodes in one table. A leaf's children are the leaf itself.

    feature: (nodes,) int16, the column that a node compares. threshold: (nodes,) float64; up to it the walk goes left.
    left, right: (nodes,) int32, rows of the children. value: (nodes,) float32, what a leaf adds. root: (trees,) int32.
    model: (trees,) int16, whose chance the tree is about. baseline: (models,) float32, log odds before any tree.
    """

    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    root: NDArray[np.int32]
    model: NDArray[np.int16]
    baseline: NDArray[np.float32]


DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "feature": "<i2",
        "threshold": "<f8",
        "left": "<i4",
        "right": "<i4",
        "value": "<f4",
        "root": "<i4",
        "model": "<i2",
        "baseline": "<f4",
    }
)
"""How each array of `Trees` is stored."""


def chances(trees: Trees, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """How likely each model is right: x (features,) float32, not scaled -> (models,) float64 from 0 to 1."""
    node = trees.root
    for _ in range(DEEPEST):
        below = np.where(x[trees.feature[node]] <= trees.threshold[node], trees.left[node], trees.right[node])
        if np.array_equal(below, node):
            break
        node = below
    odds = trees.baseline + np.bincount(trees.model, trees.value[node], len(trees.baseline))
    likely: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
    return likely


def check(trees: Trees, features: int, models: int) -> None:
    """Raise ValueError that says what makes the trees unusable for so many features and models."""
    nodes, of_trees = trees.feature.size, (trees.root.size,)
    described = (trees.feature, trees.threshold, trees.left, trees.right, trees.value)
    if nodes == 0 or any(array.shape != (nodes,) for array in described):
        raise ValueError("its nodes are not all described")
    if trees.root.shape != of_trees or trees.model.shape != of_trees or trees.baseline.shape != (models,):
        raise ValueError(f"it needs a model for each tree and a baseline for each of {models} models")
    if not _within(trees.feature, features) or not _within(trees.model, models):
        raise ValueError(f"it asks for more than {features} features or {models} models")
    if not all(_within(rows, nodes) for rows in (trees.left, trees.right, trees.root)):
        raise ValueError("a child lies outside the table")
    if not all(np.isfinite(array).all() for array in (trees.threshold, trees.value, trees.baseline)):
        raise ValueError("it holds a value that is not finite")


def _within(rows: NDArray[np.signedinteger], end: int) -> bool:
    return len(rows) == 0 or bool(rows.min() >= 0 and rows.max() < end)
