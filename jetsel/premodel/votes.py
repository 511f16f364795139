"""Which model is right on which photograph, and which one is its optimum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.wire import Criterion


def is_right(logits: NDArray[np.floating], classes: NDArray[np.int64], criterion: Criterion) -> NDArray[np.bool_]:
    """Whether the class of each photograph is the first, or among the first five, of (n, c) logits: (n,).

    Of equal logits the lower class number stands first, as in answers.
    """
    column = classes[:, None]
    true = np.take_along_axis(logits, column, axis=1)
    lower = np.arange(logits.shape[1]) < column
    above = ((logits > true) | ((logits == true) & lower)).sum(axis=1)
    right: NDArray[np.bool_] = np.less(above, 1 if criterion == "top1" else 5)
    return right


def optimum_votes(right: NDArray[np.bool_], costs: Sequence[float] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return, for each photograph, True for its optimum alone: the cheapest model that is right (section 3.3).

    right: (photographs, models), who was right on what. costs: one a model, in any order; of two that cost the same,
    the first counts as cheaper. A photograph that no model gets right votes for none.
    Returns (photographs, models) bool. Raises ValueError where the shapes do not fit or a cost is no number.
    """
    right = np.asarray(right, np.bool_)
    costs = np.asarray(costs, np.float64)
    if right.ndim != 2 or costs.shape != right.shape[1:] or np.isnan(costs).any():
        raise ValueError(f"right is {right.shape}, costs are {costs}: one cost is needed for each column")
    cheapest_first = costs.argsort(kind="stable")
    ordered = right[:, cheapest_first]
    votes = np.zeros_like(right)
    votes[:, cheapest_first] = ordered & (ordered.cumsum(axis=1) == 1)  # the first that is right, and only it
    return votes
