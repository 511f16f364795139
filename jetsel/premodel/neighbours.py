"""Finds the nearest of a fixed set of points (scaled features), exactly and fast; chooses a model by its worth."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


class Scaling:
    """Min-max scaling (Taylor et al., section 3.4.2): the training minimum becomes 0, the training maximum 1.

    A feature that was constant in training becomes 0 for every image, since its scale is unknown. Values outside the
    training range are not clipped, as in the paper: they make the distance to the neighbours show how unusual an image
    is.
    """

    def __init__(self, minimum: NDArray[np.float32], maximum: NDArray[np.float32]) -> None:
        """Store the range of each feature. minimum, maximum: (features,), finite; raises ValueError otherwise."""
        self.minimum = np.asarray(minimum, np.float32)
        self.maximum = np.asarray(maximum, np.float32)
        if self.minimum.ndim != 1 or self.minimum.shape != self.maximum.shape:
            raise ValueError(f"minimum {self.minimum.shape} and maximum {self.maximum.shape} must both be (features,)")
        if not (np.isfinite([self.minimum, self.maximum]).all() and (self.minimum <= self.maximum).all()):
            raise ValueError("minimum and maximum must be finite, and no minimum above its maximum")
        # float64, so that the difference of two float32 values does not overflow and the maximum becomes exactly 1
        span = np.subtract(self.maximum, self.minimum, dtype=np.float64)
        self._divisor = np.where(span > 0, span, np.inf)

    def apply(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scaled features, float32. features: (features,) or (images, features) float32."""
        above = np.subtract(features, self.minimum, dtype=np.float64)
        return (above / self._divisor).astype(np.float32)


def fit_scaling(features: NDArray[np.float32]) -> Scaling:
    """Return the scaling for the range of each feature over the training images.

    features: (images, features) float32, at least one image, finite. Raises ValueError otherwise.
    """
    features = np.asarray(features, np.float32)
    if features.ndim != 2 or len(features) == 0:
        raise ValueError(f"features must be (images, features) with at least one image, not {features.shape}")
    return Scaling(features.min(axis=0), features.max(axis=0))


def rounded(scaled: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return scaled features in steps of a thousandth of their range, in which images are compared with known ones."""
    return (np.rint(scaled * 1000) / 1000).astype(np.float32)


EPSILON = float(np.finfo(np.float32).eps)
TINY = float(np.finfo(np.float32).tiny)
FLOAT32_SAFE = 1e37  # scores below it cannot overflow float32, the margin included
BLOCK_PRODUCTS = 2**18  # multiply-adds at once; OpenBLAS uses threads for larger products, which wait on a busy machine
SAMPLE_SCORES = 512  # largest size of the sample that limits the search


class Neighbours:
    """Up to about 50,000 points of about 30 features, prepared for queries.

    One float32 matrix-vector product ranks all points by |p|^2 - 2 p.x, the squared distance without |x|^2. It only
    discards points that are farther in spite of rounding; the others are measured again in float64. The result is
    therefore exact; of equal distances, the lower row ranks first.
    """

    def __init__(self, points: NDArray[np.float32]) -> None:
        """Prepare the points: (n, features) float32, n >= 1. Raises ValueError unless finite and of moderate scale."""
        self.points = np.ascontiguousarray(points, np.float32)
        if self.points.ndim != 2 or len(self.points) == 0:
            raise ValueError(f"points must be (n, features) with at least one point, not {self.points.shape}")
        exact = self.points.astype(np.float64)
        squares = (exact * exact).sum(axis=1)
        largest = float(squares.max())
        if not largest < FLOAT32_SAFE:  # also true for NaN
            raise ValueError("points must be finite and of a scale whose square fits float32: scale the features first")
        # (features + 1, n): a query with a 1 appended times this table is one score for each point
        table = np.concatenate([-2 * exact.T, squares[None]]).astype(np.float32)
        block = max(1, BLOCK_PRODUCTS // len(table))
        self._blocks = [table[:, start : start + block].copy() for start in range(0, len(exact), block)]
        self._coordinates = self.points.T.copy()  # (features, n): sums over a long row are fast
        self._largest_norm = math.sqrt(largest)

    def nearest(self, x: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return rows of the k nearest points, (k,) int64, by distance and then row, and their distances, (k,) float64.

        x: (features,) float32, finite; 1 <= k <= n. Raises ValueError otherwise.
        """
        rows, squared = self._search(x, k)
        order = squared.argsort(kind="stable")  # rows are in order, so that of equals the lower one ranks first
        return rows[order], np.sqrt(squared[order])

    def nearest_set(self, x: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what `nearest` returns, but in row order: for many neighbours this is faster, as nothing is sorted."""
        rows, squared = self._search(x, k)
        return rows, np.sqrt(squared)

    def nearest_many(self, xs: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return `nearest` for each row of xs, (queries, features): rows and distances, (queries, k)."""
        rows = np.empty((len(xs), k), np.int64)
        distances = np.empty((len(xs), k), np.float64)
        for i, x in enumerate(xs):
            rows[i], distances[i] = self.nearest(x, k)
        return rows, distances

    def _search(self, x: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the rows of the k nearest points, in order, and their squared distances to x. See `nearest`."""
        n, features = self.points.shape
        exact = np.asarray(x, np.float32).astype(np.float64)
        if exact.shape != (features,) or not 1 <= k <= n:
            raise ValueError(f"x is {exact.shape} and k {k}; they must be ({features},) and from 1 to {n}")
        square = float(exact @ exact)
        if not math.isfinite(square):
            raise ValueError("x must be finite")
        scale = self._largest_norm * (self._largest_norm + 2 * math.sqrt(square))
        if not scale < FLOAT32_SAFE:
            return self._nearest_among(np.arange(n), exact, k)
        query = np.append(exact, 1).astype(np.float32)
        scores = np.concatenate([np.dot(query, block) for block in self._blocks])
        # A sum of m float32 products is off by at most m/2 eps times the sum of their sizes (Higham, Accuracy and
        # Stability of Numerical Algorithms, section 3.1), here with m = features + 1 and sizes of at most `scale`.
        # Doubled, it also covers the rounding of the squares and limits; the last term is float64's, for a distant x.
        error = (features + 2) * EPSILON * (scale + TINY + EPSILON * square) + features * TINY
        # A quantile of a sample usually limits the search to few points.
        sample = scores[:: n // SAMPLE_SCORES + 1]
        expected = k * len(sample) / n
        rank = int(expected + 3 * math.sqrt(expected)) + 3  # three deviations above what the sample has on average
        if len(sample) < n and rank < len(sample) // 2:
            limit = np.partition(sample, rank)[rank]
            rows = (scores <= limit).nonzero()[0]
            if len(rows) >= k:
                rows, squared = self._nearest_among(rows, exact, k)
                if squared.max() - square + error < limit:
                    return rows, squared
        limit = np.partition(scores, k - 1)[k - 1] + 2 * error
        return self._nearest_among((scores <= limit).nonzero()[0], exact, k)

    def _nearest_among(
        self, rows: NDArray[np.int64], x: NDArray[np.float64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k nearest of these rows, which are in order, and their squared distances to x."""
        offsets = self._coordinates.take(rows, axis=1) - x[:, None]
        offsets *= offsets
        squared = offsets.sum(axis=0)
        farthest = np.partition(squared, k - 1)[k - 1]
        inside = squared <= farthest
        if np.count_nonzero(inside) > k:
            inside[np.flatnonzero(squared == farthest)[k - np.count_nonzero(squared < farthest) :]] = False
        return rows[inside], squared[inside]


def worthiest(chances: NDArray[np.floating], costs: NDArray[np.floating], price: float) -> NDArray[np.int64]:
    """Return (...,) int64: the index of the model or path with the largest chance - price * cost, of equals the first.

    chances: (..., models), probability that each is right. costs: (models,) or (..., models), ms or mJ, 0 for a model
    that has run. price: exchange rate, the probability of being right that must be gained for one more ms or mJ.
    """
    index: NDArray[np.int64] = (chances - price * costs).argmax(axis=-1)
    return index
