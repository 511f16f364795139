"""A cascade that the premodel shortens: where the neighbours were hard for the first rung, it is not tried."""

from __future__ import annotations

from dataclasses import dataclass

from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Evidence, Steps
from jetsel.premodel import Scaling, Shares


@dataclass(frozen=True)
class SkippingCascade:
    """Begins at the second rung where fewer than `share` of the k nearest photographs satisfied the first.

    sure: column 0 says whether the cascade's first rung was sure of a calibration photograph.
    """

    name: str
    cascade: Cascade
    sure: Shares
    scaling: Scaling
    share: float
    features: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run."""
        return self.cascade.models

    @property
    def first(self) -> tuple[str, ...]:
        """Either of the first two rungs may be the first to run."""
        return self.models[:2]

    def __call__(self, photo: Evidence) -> Steps:
        """Look at the neighbours, then climb."""
        assert photo.features is not None
        share = float(self.sure.of(self.scaling.apply(photo.features))[0])
        told = f"{self.cascade.rungs[0].model} was sure of {100 * share:.0f} % of {self.sure.k} photographs like this"
        if share < self.share and len(self.cascade.rungs) > 1:
            return (yield from Cascade(self.name, self.cascade.rungs[1:]).climb(f"{told}: skipped"))
        return (yield from self.cascade.climb(told))
