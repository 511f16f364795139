"""The premodel of Taylor et al.: an image's cached neighbours estimate how often each path is right on such images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.neighbours import Neighbours, Scaling, rounded

MOST_REMEMBERED = 4096  # estimates of about 500 bytes each


class PathEstimates(NamedTuple):
    """Estimates, from an image's neighbours, for P paths (a single model or a cascade each)."""

    right: NDArray[np.float32]  # (P,), share of right answers
    cost: NDArray[np.float32]  # (P,), mean cost, in the unit of the fitted costs
    distance: float | None  # mean distance to the neighbours, in scaled features; None if all images are neighbours


class Chain:
    """Estimates how often each path is right on images like this one, and its cost (sections 3.1 and 3.3).

    In the paper, five neighbours vote for the cheapest model that is right. Here many neighbours give shares, so that
    the choice weighs how often a path is right against its cost. overall: the estimates over all images.
    """

    def __init__(
        self, neighbours: Neighbours, scaling: Scaling, right: NDArray[np.bool_], cost: NDArray[np.float32], k: int
    ) -> None:
        """Store whether each of P paths is right on each of n images, and its cost there, (n, P) each.

        neighbours: the n images' scaled features. scaling: for the features of a new image. k: number of neighbours,
        1 to n. Raises ValueError for other shapes.
        """
        n, features = neighbours.points.shape
        if right.shape != cost.shape or len(right) != n:
            raise ValueError(f"right is {right.shape} and cost {cost.shape}; both need {n} rows, one for each point")
        if scaling.minimum.shape != (features,):
            raise ValueError(f"scaling knows {scaling.minimum.size} features, the points have {features}")
        if not 1 <= k <= n:
            raise ValueError(f"k is {k}; it must be from 1 to the {n} images fitted on")
        self.k, self._neighbours, self._scaling = k, neighbours, scaling
        self._columns = np.stack([right, cost], axis=1).astype(np.float32)  # (n, 2, P)
        overall = self._columns.mean(axis=0)
        self.overall = PathEstimates(overall[0], overall[1], None)
        self._remembered: dict[bytes, PathEstimates] = {}

    def estimate(self, features: NDArray[np.float32]) -> PathEstimates:
        """Return the estimates for one image. features: (features,) float32, unscaled; ValueError unless finite.

        Features are rounded to a thousandth of their range, and estimates are remembered (they are read-only): all
        images of a camera have one size, which may be all that counts, and a camera's images in one light are alike.
        """
        query = rounded(self._scaling.apply(features))
        key = query.tobytes()
        estimates = self._remembered.get(key)
        if estimates is None:
            rows, distances = self._neighbours.nearest_set(query, self.k)
            means = self._columns.take(rows, axis=0).sum(axis=0) / self.k
            means.flags.writeable = False
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            estimates = PathEstimates(means[0], means[1], float(distances.sum()) / self.k)
            self._remembered[key] = estimates
        return estimates
