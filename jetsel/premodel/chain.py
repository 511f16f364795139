"""The premodel of Taylor et al.: one nearest-neighbour link for each model, all reading the same neighbours."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.premodel.neighbours import Neighbours, Scaling


class Soundness(Struct, frozen=True, forbid_unknown_fields=True):
    """What a distance to the neighbours says of a chain's choice (section 6).

    limit: beyond it the choice is in doubt, None if no distance is. steps: (distance up to which, share of the
    choices there that were right), by growing distance; beyond the last, the last.
    """

    limit: float | None = None
    steps: tuple[tuple[float, float], ...] = ()

    def confidence(self, distance: float) -> float | None:
        """How often choices at this distance were right, None if nothing was fitted."""
        if not self.steps:
            return None
        place = bisect.bisect_left(self.steps, distance, key=lambda step: step[0])
        return self.steps[min(place, len(self.steps) - 1)][1]

    def is_far(self, distance: float) -> bool:
        """Whether this distance leaves the choice in doubt."""
        return self.limit is not None and distance > self.limit


@dataclass(frozen=True, slots=True)
class Choice:
    """What the chain says of one photograph.

    model: the first whose link votes yes; None if none does, or if the neighbours are too far to be trusted.
    distance: the mean Euclidean distance to the k neighbours in scaled features. votes: for each link, how many of the
    k neighbours voted for its model. confidence: how often a choice at this distance was right in calibration
    (section 6), None if that was not fitted. is_far: whether the distance is past the fitted limit.
    """

    model: str | None
    distance: float
    votes: tuple[int, ...]
    confidence: float | None = None
    is_far: bool = False


class Chain:
    """Arrays in, choice out: no input or output, clock or randomness (sections 3.1 and 3.3)."""

    def __init__(
        self,
        models: Sequence[str],
        votes: NDArray[np.bool_],
        neighbours: Neighbours,
        scaling: Scaling,
        k: int,
        soundness: Soundness = Soundness(),  # noqa: B008  # frozen: one for all that fitted none
    ) -> None:
        """Keep the links.

        models: one a link, in the order in which they are asked. votes: (points, links), whether the photograph behind
        each point of `neighbours` votes for the link's model. k: neighbours asked, at most the number of points (the
        paper: 5). Raises ValueError if these do not fit one another.
        """
        self.soundness = soundness
        self.models = tuple(models)
        self.k = k
        self._votes = np.ascontiguousarray(votes, np.bool_)
        self._neighbours = neighbours
        self._scaling = scaling
        n, features = neighbours.points.shape
        if not self.models or len(set(self.models)) < len(self.models):
            raise ValueError(f"it needs models without duplicates, not {', '.join(self.models)}")
        if self._votes.shape != (n, len(self.models)):
            raise ValueError(f"votes have shape {self._votes.shape}; expected {n} points and {len(self.models)} models")
        if scaling.minimum.shape != (features,):
            raise ValueError(f"scaling knows {scaling.minimum.size} features, the points have {features}")
        if not 1 <= k <= n:
            raise ValueError(f"k is {k}; it must be from 1 to the {n} images fitted on")

    def choose(self, features: NDArray[np.float32]) -> Choice:
        """Choose for one photograph; features: (features,) float32, not scaled, finite. Raises ValueError otherwise."""
        near, distances = self._neighbours.nearest(self._scaling.apply(features), self.k)
        votes = tuple(self._votes[near].sum(axis=0).tolist())
        distance = float(distances.mean())
        is_far = self.soundness.is_far(distance)
        elected = next((name for name, yes in zip(self.models, votes, strict=True) if yes * 2 > self.k), None)
        return Choice(None if is_far else elected, distance, votes, self.soundness.confidence(distance), is_far)
