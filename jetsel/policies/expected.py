"""What a calibration expects to see: how features and confidences lay on its photographs, to notice when they move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

BINS = 10


class Bins(Struct, frozen=True):
    """One feature: inner edges, ascending, and the share of the calibration's photographs in each bin, one more."""

    edges: Annotated[tuple[float, ...], Meta(max_length=BINS - 1)]
    shares: Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], Meta(min_length=1, max_length=BINS)]

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.edges) + 1:
            raise ValueError("shares: one more than edges")

    def of(self, values: NDArray[np.float32]) -> NDArray[np.intp]:
        """The bin of each value, (n,)."""
        return np.searchsorted(np.asarray(self.edges), values, side="left")


class Confidence(Struct, frozen=True):
    """A model's confidence where the default policy ran it: its mean, and its standard deviation over photographs."""

    mean: float
    deviation: float


class Expected(Struct, frozen=True):
    """features: by name. confidences: by model, of those that the default policy of top1 ran."""

    features: dict[str, Bins]
    confidences: dict[str, Confidence]


def bins_of(values: NDArray[np.float32]) -> Bins:
    """Return tenths of these (n,) values; fewer bins where many values are the same."""
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS, method="inverted_cdf").astype(np.float64))
    edges = edges[edges < values.max()]
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    return Bins(tuple(edges.tolist()), tuple((counts / len(values)).tolist()))


def stability_index(expected: Sequence[float], bins: NDArray[np.intp]) -> float:
    """Return the population stability index of photographs, (n,) bins, against the expected shares.

    The sum of (seen - expected) ln(seen / expected) (Siddiqi, Credit Risk Scorecards, 2006, which calls less than 0.1
    no change and more than 0.25 a significant one). Half a photograph is added to each bin, so that none is empty.
    """
    n = len(bins)
    seen = (np.bincount(bins, minlength=len(expected)) + 0.5) / (n + 0.5 * len(expected))
    known = (np.asarray(expected) * n + 0.5) / (n + 0.5 * len(expected))
    return float(((seen - known) * np.log(seen / known)).sum())
