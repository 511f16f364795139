"""The confidence cascade: cheapest model first, the next one while the last is not sure enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from jetsel.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Part, Plan, Table, Tried, unknown_models
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.premodel.cascades import Fitted, fit_cascades, judge
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One rung of a cascade: its answer is taken where its confidence reaches the threshold; the last rung's is 0.0."""

    model: Annotated[str, Meta(min_length=1)]
    threshold: Annotated[float, Meta(ge=0)]


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[Rung, ...]:
    """Return the rungs of these models, cheapest first; thresholds: of all but the last."""
    return tuple(Rung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


@dataclass(frozen=True)
class Ladder:
    """Rungs cheapest first, of which the first always runs."""

    name: str
    rungs: tuple[Rung, ...]

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
        """Climb until a model is sure. An unavailable rung is passed over; the last good answer stands in for it."""
        why = "first rung"
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


class Facts(Struct, frozen=True, forbid_unknown_fields=True):
    """By criterion: the rungs, cheapest first."""

    rungs: dict[Criterion, tuple[Rung, ...]]


@dataclass(frozen=True, eq=False)
class _Learned:
    """The models, and a cascade for each budget."""

    models: tuple[str, ...]
    cascades: list[Fitted]


class CascadeKind(Kind):
    """Learned is the most accurate cascade for each budget; tried is each of them."""

    facts = Facts

    def __init__(
        self, name: str, policy: Callable[[tuple[Rung, ...], Criterion], Policy], *, averaged: bool = False
    ) -> None:
        """policy: makes one of these rungs; averaged: whether the models that ran answer together."""
        self.name = name
        self._policy = policy
        self._averaged = averaged

    def learn(self, train: Table, _plan: Plan) -> _Learned:
        """Fit rungs and thresholds."""
        return _Learned(train.models, fit_cascades(train.voices(averaged=self._averaged)))

    def tried(self, learned: _Learned, held: Table) -> list[Tried]:
        """One point for each budget."""
        voices = held.voices(averaged=self._averaged)
        return [
            Tried(judge(fitted, voices)[0], lambda costs, fitted=fitted: judge(fitted, voices, costs)[1])  # type: ignore[misc]
            for fitted in learned.cascades
        ]

    def fitted(self, learned: Mapping[Criterion, _Learned], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the cascade of the chosen budget."""
        rungs = {}
        for criterion, one in learned.items():
            fitted = one.cascades[chosen[criterion]]
            models = [one.models[rung] for rung in fitted.rungs]
            rungs[criterion] = rungs_of(models, [float(threshold) for threshold in fitted.thresholds[:-1]])
        return Part(Facts(rungs))

    def fault(self, part: Part, calibration: Calibration) -> str | None:
        """The last rung must accept all, and each be a model of the calibration."""
        for criterion, rungs in part.facts.rungs.items():
            if not rungs or rungs[-1].threshold != 0.0:
                return f"the last rung of {criterion} must accept all"
        return unknown_models([rung.model for rungs in part.facts.rungs.values() for rung in rungs], calibration)

    def make(self, part: Part, _calibration: Calibration) -> dict[Criterion, Policy]:
        """One policy a criterion."""
        return {criterion: self._policy(rungs, criterion) for criterion, rungs in part.facts.rungs.items()}


CASCADE = CascadeKind("cascade", lambda rungs, _criterion: Cascade("cascade", rungs))
