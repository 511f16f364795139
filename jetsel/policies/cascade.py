"""The confidence cascades: cheapest model first, the next one while those that ran are not sure enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jetsel.artefact.calibration import Calibration, Part
from jetsel.artefact.parts import Rung
from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.kind import ChainPlan, Kind, Table, TriedPoint, columns
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.premodel.cascades import Fitted, fit_cascades, judge

LEAST = np.float32(1e-30)  # a probability that float32 rounded to nothing still has a logarithm


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[Rung, ...]:
    """Return the rungs of these models, cheapest first; thresholds: of all but the last."""
    return tuple(Rung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


def fitted_rungs(models: Sequence[str], fitted: Fitted) -> tuple[Rung, ...]:
    """Return the rungs of a cascade that was fitted; models: those that its columns are of."""
    return rungs_of([models[rung] for rung in fitted.rungs], [float(one) for one in fitted.thresholds[:-1]])


def check_rungs(rungs: Sequence[Rung], calibration: Calibration) -> None:
    """Raise ValueError unless the last rung accepts all, and each is a model of the calibration."""
    if not rungs or rungs[-1].threshold != 0.0:
        raise ValueError("the last rung must accept all")
    columns([rung.model for rung in rungs], calibration)


@dataclass(frozen=True)
class Cascade:
    """The last that ran answers: the strongest simple baseline (Wang et al. 2020, Wisdom of Committees, section 3).

    rungs: cheapest first; the first always runs.
    """

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

    def __call__(self, photo: Evidence) -> Steps:
        """Climb from the first rung."""
        return self.climb(0, "first rung")

    def climb(self, start: int, why: str) -> Steps:
        """Climb until those that ran are sure. An unavailable rung is passed over; those that ran stand in for it.

        start: the place of the rung to begin with. why: it is that one.
        """
        predictions: list[Prediction] = []
        for rung in self.rungs[start:]:
            last = rung is self.rungs[-1]
            try:
                (seen,) = yield Run((rung.model,), why)
            except ModelUnavailableError:
                if last and not predictions:
                    raise
                why = f"{rung.model} is unavailable"
                continue
            predictions.append(seen)
            answer = self.answer(predictions)
            if last:
                return Decision(answer, f"{rung.model} is the last rung")
            both = f"confidence {answer.confidence:.2f}, threshold {rung.threshold:.2f}"
            if answer.confidence >= rung.threshold:
                return Decision(answer, f"{self.names(predictions)} is sure: {both}")
            why = f"{self.names(predictions)} was not sure: {both}"
        return Decision(self.answer(predictions), f"{why}; {predictions[-1].model} is the best that ran")

    def answer(self, predictions: Sequence[Prediction]) -> Prediction:
        """Return what those that ran say: what the last of them says."""
        return predictions[-1]

    def names(self, predictions: Sequence[Prediction]) -> str:
        """Return whose answer that is, in words."""
        return predictions[-1].model


@dataclass(frozen=True)
class AveragedCascade(Cascade):
    """The answer is the softmax of the mean of the temperature-scaled logits of all that ran."""

    def answer(self, predictions: Sequence[Prediction]) -> Prediction:
        """Return the geometric mean of the probabilities, which is what the mean of scaled logits gives.

        It goes by the name of the last model, the most expensive of them.
        """
        if len(predictions) == 1:
            return predictions[0]
        logs = np.log(np.maximum(np.stack([prediction.probabilities for prediction in predictions]), LEAST))
        mean = logs.mean(axis=0)
        mean -= mean.max()
        probabilities = np.exp(mean, mean)
        probabilities /= probabilities.sum()
        confidence = float(probabilities.max())
        return Prediction(predictions[-1].model, probabilities, confidence, predictions[-1].embedding)

    def names(self, predictions: Sequence[Prediction]) -> str:
        """Return whose answer that is, in words."""
        names = [prediction.model for prediction in predictions]
        return names[0] if len(names) == 1 else f"the mean of {' and '.join(names)}"


@dataclass(frozen=True, eq=False)
class _Learned:
    """The models, and a cascade for each budget."""

    models: tuple[str, ...]
    cascades: list[Fitted]


class CascadeKind(Kind):
    """Learned is the most accurate cascade for each budget; tried is each of them."""

    def __init__(self, name: str, *, averaged: bool) -> None:
        """averaged: whether the models that ran answer together."""
        self.name = name
        self._averaged = averaged

    def learn(self, train: Table, _plan: ChainPlan) -> _Learned:
        """Fit rungs and thresholds."""
        return _Learned(train.models, fit_cascades(train.outputs(averaged=True)) if self._averaged else train.cascades)

    def tried(self, learned: _Learned, held: Table) -> list[TriedPoint]:
        """One point for each budget."""
        outputs = held.outputs(averaged=self._averaged)
        return [TriedPoint(*judge(fitted, outputs)) for fitted in learned.cascades]

    def fitted(self, learned: _Learned, chosen: Any) -> Part:
        """Store the cascade of the chosen budget."""
        return Part(fitted_rungs(learned.models, learned.cascades[chosen]))

    def make(self, part: Part, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy; its last rung must accept all, and each be a model of the calibration."""
        check_rungs(part.facts, calibration)
        return {self.name: (AveragedCascade if self._averaged else Cascade)(self.name, part.facts)}
