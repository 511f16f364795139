"""How often each model was right on a photograph's neighbours, and which model is worth what it costs then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.neighbours import Neighbours


def shares(neighbours: Neighbours, table: NDArray[np.bool_], k: int, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """The share of yes in each column of a table among the k points nearest to x (width,): (columns,) float64.

    table: (n, columns), a row for each of the n points; 1 <= k <= n.
    """
    near, _ = neighbours.nearest(x, k)
    found: NDArray[np.float64] = table[near].mean(axis=0)
    return found


def worthiest(chances: NDArray[np.float64], costs: NDArray[np.float64], price: float) -> NDArray[np.int64]:
    """The model of the largest chance less the price of what it costs: one for each row.

    chances: (..., models), how likely each is right. costs: (models,), ms or mJ, 0 for one that has run already. price:
    how much chance one of these must buy. Of equals the first. Returns (...,) int64.
    """
    worth: NDArray[np.int64] = (chances - price * costs).argmax(axis=-1)
    return worth
