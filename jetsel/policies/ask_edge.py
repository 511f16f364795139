"""The policy that asks one model of the edge, and before that one here where the configuration wants it."""

from __future__ import annotations

from dataclasses import dataclass

from jetsel.policies.policy import Decision, Evidence, Run, Steps


@dataclass(frozen=True)
class AskEdge:
    """Asks `name`, a model of the edge, whose failure is the caller's to hear.

    accuracy: how often that is right, None where it is not known. first_here: the model here that must have been less
    sure than that before a photograph may leave; None: none must.
    """

    name: str
    accuracy: float | None
    first_here: str | None
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Those that may run, in that order."""
        return (self.name,) if self.first_here is None else (self.first_here, self.name)

    @property
    def first(self) -> tuple[str, ...]:
        """The one that runs in any case."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Ask."""
        why = "no path here has what was asked for"
        if self.first_here is not None:
            (seen,) = yield Run((self.first_here,), f"{why}, and {self.name} is asked where this is not sure")
            if self.accuracy is not None and seen.confidence >= self.accuracy:
                return Decision(seen, f"{seen.model} is as sure as {self.name} is right: {seen.confidence:.2f}")
            why = f"{seen.model} was not sure: {seen.confidence:.2f}"
        (seen,) = yield Run((self.name,), why, "deadline")
        return Decision(seen, why)
