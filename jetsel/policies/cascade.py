"""The confidence cascade: cheapest model first, the next one while the last is not sure enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jetsel.errors import ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, Prediction, Run, Steps


@dataclass(frozen=True)
class CascadeRung:
    """One model, and the confidence from which its answer is taken; the last rung's is not read."""

    model: str
    threshold: float


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[CascadeRung, ...]:
    """Return the rungs of these models, cheapest first; thresholds: of all but the last."""
    return tuple(CascadeRung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


@dataclass(frozen=True)
class Ladder:
    """Rungs cheapest first, of which the first always runs."""

    name: str
    rungs: tuple[CascadeRung, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """It looks at what the models say, and at nothing before."""
        return ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run."""
        return tuple(rung.model for rung in self.rungs)

    @property
    def first(self) -> tuple[str, ...]:
        """The model that always runs."""
        return self.models[:1]


@dataclass(frozen=True)
class Cascade(Ladder):
    """The last that ran answers: the strongest simple baseline (Wang et al. 2020, Wisdom of Committees, section 3)."""

    @classmethod
    def of(cls, name: str, models: Sequence[str], thresholds: Sequence[float]) -> Cascade:
        """Build from models and the thresholds of all but the last."""
        return cls(name, rungs_of(models, thresholds))

    def __call__(self, photo: Evidence) -> Steps:
        """Climb from the first rung."""
        return (yield from self.climb("first rung"))

    def climb(self, why: str) -> Steps:
        """Climb until a model is sure. An unavailable rung is passed over; the last good answer stands in for it.

        why: the reason of the first run.
        """
        best: Prediction | None = None
        for rung in self.rungs:
            last = rung is self.rungs[-1]
            try:
                (best,) = yield Run((rung.model,), why)
            except ModelUnavailableError:
                if last and best is None:
                    raise
                why = f"{rung.model} is unavailable"
                continue
            if last:
                return Decision(best, f"{rung.model} is the last rung")
            if best.confidence >= rung.threshold:
                return Decision(best, f"{rung.model} is sure: {best.confidence:.2f} of at least {rung.threshold:.2f}")
            why = f"{rung.model} was not sure: {best.confidence:.2f} of {rung.threshold:.2f}"
        assert best is not None
        return Decision(best, f"{why}; {best.model} is the best that ran")
