"""How often each model was right on a photograph's neighbours, and which model is worth what it costs then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.neighbours import Neighbours


class Shares:
    """Reads columns of a table of yes and no through the k nearest of a set of points."""

    def __init__(self, neighbours: Neighbours, table: NDArray[np.bool_], k: int) -> None:
        """Keep the neighbours of n points and the table (n, columns); 1 <= k <= n. Raises ValueError otherwise."""
        n = len(neighbours.points)
        if n != len(table) or not 1 <= k <= n:
            raise ValueError(f"{n} points, {len(table)} rows and k {k} do not fit one another")
        self._neighbours = neighbours
        self._table = table
        self.k = k

    def of(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The share of yes in each column among the neighbours of x (width,): (columns,) float64."""
        near, _ = self._neighbours.nearest(x, self.k)
        shares: NDArray[np.float64] = self._table[near].mean(axis=0)
        return shares


def worthiest(chances: NDArray[np.float64], costs: NDArray[np.float64], price: float) -> NDArray[np.int64]:
    """The model of the largest chance less the price of what it costs: one for each row.

    chances: (..., models), how likely each is right. costs: (models,), ms or mJ, 0 for one that has run already. price:
    how much chance one of these must buy. Of equals the first. Returns (...,) int64.
    """
    worth: NDArray[np.int64] = (chances - price * costs).argmax(axis=-1)
    return worth
