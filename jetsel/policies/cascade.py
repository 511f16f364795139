"""Confidence cascades: a cheap model first, a larger one if that is not sure; both then answer together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.artefact.calibration import Calibration, Cascades, Part, Rung
from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Table, TriedPoint, columns
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.premodel.cascades import Fitted, judge

NAME = "cascade"
LEAST = np.float32(1e-30)  # a probability that float32 rounded to nothing still has a logarithm


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[Rung, ...]:
    """Return the rungs of these models, cheapest first; thresholds: of all but the last."""
    return tuple(Rung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


def check_rungs(name: str, rungs: Sequence[Rung], calibration: Calibration) -> None:
    """Raise ValueError unless the last rung accepts all, and each is a model of the calibration."""
    if not rungs or rungs[-1].threshold != 0.0:
        raise ValueError(f"the last rung of {name} must accept all")
    columns([rung.model for rung in rungs], calibration)


@dataclass(frozen=True)
class Cascade:
    """The answer is the softmax of the mean of the temperature-scaled logits of all models that ran.

    A cascade of models by confidence: Wang et al. 2020, Wisdom of Committees, section 3.
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

    def __str__(self) -> str:
        return " then ".join(self.models)

    def __call__(self, photo: Evidence) -> Steps:
        """Climb from the first model."""
        return self.climb("first rung")

    def climb(self, why: str) -> Steps:
        """Run models until those that ran are sure; an unavailable one is passed over. why: the first one runs."""
        predictions: list[Prediction] = []
        for rung in self.rungs:
            last = rung is self.rungs[-1]
            try:
                (prediction,) = yield Run((rung.model,), why)
            except ModelUnavailableError:
                if last and not predictions:
                    raise
                why = f"{rung.model} is unavailable"
                continue
            predictions.append(prediction)
            answer = self.answer(predictions)
            if last:
                return Decision(answer, f"{rung.model} is the last rung")
            both = f"confidence {answer.confidence:.2f}, threshold {rung.threshold:.2f}"
            if answer.confidence >= rung.threshold:
                return Decision(answer, f"{_names(predictions)} is sure: {both}")
            why = f"{_names(predictions)} was not sure: {both}"
        return Decision(self.answer(predictions), f"{why}; {predictions[-1].model} is the best that ran")

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
        return Prediction(predictions[-1].model, probabilities, float(probabilities.max()), predictions[-1].embedding)


def _names(predictions: Sequence[Prediction]) -> str:
    """Return whose answer that is, in words."""
    names = [prediction.model for prediction in predictions]
    return names[0] if len(names) == 1 else f"the mean of {' and '.join(names)}"


@dataclass(frozen=True)
class ChosenPoints:
    """Which of the fitted cascades are offered: the place of `cascade`, and those of the front, the dearest first."""

    cascade: int
    front: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LearnedCascades:
    """The models, and the most accurate cascade for each budget."""

    models: tuple[str, ...]
    cascades: list[Fitted]

    def rungs(self, place: int) -> tuple[Rung, ...]:
        """Return the rungs of one of the cascades."""
        fitted = self.cascades[place]
        return rungs_of([self.models[rung] for rung in fitted.rungs], fitted.thresholds[:-1])


class CascadeKind(Kind):
    """Learned is a cascade for each budget; one of them is `cascade`, others are its front: `cascade:1` and so on."""

    name = NAME

    def learn(self, train: Table) -> LearnedCascades:
        """Fit models and threshold for each budget."""
        return LearnedCascades(train.models, train.cascades)

    def tried(self, learned: LearnedCascades, held: Table) -> list[TriedPoint]:
        """One point for each budget, the cheapest first."""
        points = {fitted: TriedPoint(*judge(fitted, held.outputs)) for fitted in set(learned.cascades)}
        return [points[fitted] for fitted in learned.cascades]

    def fitted(self, learned: LearnedCascades, chosen: ChosenPoints) -> Part:
        """Store the cascades of the chosen budgets."""
        front = tuple(learned.rungs(place) for place in chosen.front)
        return Part(Cascades(learned.rungs(chosen.cascade), front))

    def make(self, part: Part, calibration: Calibration) -> dict[str, Policy]:
        """Return all of them; the last rung of each must accept all, and each rung be a model of the calibration."""
        by_name = {NAME: part.facts.cascade} | {f"{NAME}:{n}": rungs for n, rungs in enumerate(part.facts.front, 1)}
        for name, rungs in by_name.items():
            check_rungs(name, rungs, calibration)
        return {name: Cascade(name, rungs) for name, rungs in by_name.items()}
