"""Confidence cascades: a cheap model runs first; while the answer is unsure, a larger model joins in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.artefact.calibration import Calibration, CascadeFacts, PolicyPart, Rung
from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Table, TriedPoint, columns
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.premodel.cascades import FittedCascade, replay_cascade

NAME = "cascade"
LEAST = np.float32(1e-30)  # float32 rounds small probabilities to 0, which has no logarithm


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[Rung, ...]:
    """Return the rungs of these models, cheapest first. thresholds: one for each model but the last."""
    return tuple(Rung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


def check_rungs(name: str, rungs: Sequence[Rung], calibration: Calibration) -> None:
    """Raise ValueError unless the last rung accepts every answer and the calibration has every model."""
    if not rungs or rungs[-1].threshold != 0.0:
        raise ValueError(f"the last rung of {name} must accept all")
    columns([rung.model for rung in rungs], calibration)


@dataclass(frozen=True)
class Cascade:
    """Answers with the mean of the temperature-scaled logits of all models that ran.

    Source: Wang et al. 2020, Wisdom of Committees, section 3. rungs: cheapest first; the first always runs.
    """

    name: str
    rungs: tuple[Rung, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """A cascade reads no features."""
        return ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
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
        """Run the models in order until the answer is sure; skip unavailable ones. why: reason for the first run."""
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
        """Return the softmax of the mean logits: the normalised geometric mean of the probabilities.

        The answer has the name and embedding of the last model.
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
    """Return the models behind an answer, in words."""
    names = [prediction.model for prediction in predictions]
    return names[0] if len(names) == 1 else f"the mean of {' and '.join(names)}"


@dataclass(frozen=True)
class ChosenPoints:
    """Places of the offered cascades: that of `cascade`, and those of its front, most expensive first."""

    cascade: int
    front: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LearnedCascades:
    """The models, and the most accurate cascade for each budget."""

    models: tuple[str, ...]
    cascades: list[FittedCascade]

    def rungs(self, place: int) -> tuple[Rung, ...]:
        """Return the rungs of the cascade at this place."""
        fitted = self.cascades[place]
        return rungs_of([self.models[rung] for rung in fitted.rungs], fitted.thresholds[:-1])


class CascadeKind(Kind):
    """Fits a cascade for each budget: one becomes `cascade`, others `cascade:1` and so on."""

    name = NAME

    def learn(self, train: Table) -> LearnedCascades:
        """Fit the cascades, one for each budget."""
        return LearnedCascades(train.models, train.cascades)

    def tried(self, learned: LearnedCascades, held: Table) -> list[TriedPoint]:
        """Return one point for each budget, the cheapest first."""
        points = {fitted: TriedPoint(*replay_cascade(fitted, held.outputs)) for fitted in set(learned.cascades)}
        return [points[fitted] for fitted in learned.cascades]

    def fitted(self, learned: LearnedCascades, chosen: ChosenPoints) -> PolicyPart:
        """Store the cascades of the chosen budgets."""
        front = tuple(learned.rungs(place) for place in chosen.front)
        return PolicyPart(CascadeFacts(learned.rungs(chosen.cascade), front))

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return all offered cascades by name. Raises ValueError if the calibration lacks a model of a rung."""
        by_name = {NAME: part.facts.cascade} | {f"{NAME}:{n}": rungs for n, rungs in enumerate(part.facts.front, 1)}
        for name, rungs in by_name.items():
            check_rungs(name, rungs, calibration)
        return {name: Cascade(name, rungs) for name, rungs in by_name.items()}
