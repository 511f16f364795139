"""The policy that always runs one model: for requests that name a model, and as the baseline of every chooser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jetsel.policies.policy import Decision, Evidence, Run, Steps


@dataclass(frozen=True)
class Single:
    """Policy that runs `model` and returns its prediction."""

    model: str
    features: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """Name in requests."""
        return f"single:{self.model}"

    @property
    def models(self) -> tuple[str, ...]:
        """The only model."""
        return (self.model,)

    first_models = models

    def __call__(self, photo: Evidence) -> Steps:
        """Run the model. If the model is unavailable, the request fails with that error."""
        (prediction,) = yield Run((self.model,), "the only model of this policy")
        return Decision(prediction, "the only model of this policy")
