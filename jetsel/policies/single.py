"""The policy that always runs one model: a pinned request, and the rival that every chooser must beat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jetsel.policies.policy import Decision, Evidence, Run, Steps


@dataclass(frozen=True)
class Single:
    """Runs `model` and answers what it says."""

    model: str
    features: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """How requests name it."""
        return f"single:{self.model}"

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run."""
        return (self.model,)

    first = models

    def __call__(self, photo: Evidence) -> Steps:
        """Run the one model; if it is unavailable, that is the answer's error."""
        (prediction,) = yield Run((self.model,), "the only model of this policy")
        return Decision(prediction, "the only model of this policy")
