"""Confidence cascades: a cheap model runs first; while the answer is unsure, a larger model joins in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.artefact.calibration import Calibration, CascadeFacts, PolicyPart, Rung
from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Table, TriedPoint, model_columns
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps
from jetsel.premodel.cascades import FittedCascade, replay_cascade

NAME = "cascade"
LEAST_PROBABILITY = np.float32(1e-30)  # float32 rounds small probabilities to 0, which has no logarithm


def rungs_of(models: Sequence[str], thresholds: Sequence[float]) -> tuple[Rung, ...]:
    """Return the rungs of these models, cheapest first. thresholds: one for each model but the last."""
    return tuple(Rung(m, t) for m, t in zip(models, (*thresholds, 0.0), strict=True))


def check_rungs(name: str, rungs: Sequence[Rung], calibration: Calibration) -> None:
    """Raise ValueError unless the last rung accepts any answer and the calibration has all models. name: in errors."""
    if not rungs or rungs[-1].threshold != 0.0:
        raise ValueError(f"the last rung of {name} must accept all")
    model_columns([rung.model for rung in rungs], calibration)


@dataclass(frozen=True)
class Cascade:
    """Policy that runs models in order until the confidence of their joint answer reaches the rung's threshold.

    The answer is the mean of the temperature-scaled logits of all models that ran: Wang et al. 2020, Wisdom of
    Committees, section 3. rungs: models with thresholds, cheapest first; the first always runs.
    """

    name: str
    rungs: tuple[Rung, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """No features: a cascade does not read the image itself."""
        return ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(rung.model for rung in self.rungs)

    @property
    def first_models(self) -> tuple[str, ...]:
        """The model that always runs."""
        return self.models[:1]

    def __str__(self) -> str:
        return " then ".join(self.models)

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cascade for one image."""
        return self.climb("first rung")

    def climb(self, why: str) -> Steps:
        """Run the models in order until the answer is sure; skip unavailable ones. why: reason for the first run."""
        predictions: list[Prediction] = []
        for rung in self.rungs:
            is_last = rung is self.rungs[-1]
            try:
                (prediction,) = yield Run((rung.model,), why)
            except ModelUnavailableError:
                if is_last and not predictions:
                    raise
                why = f"{rung.model} is unavailable"
                continue
            predictions.append(prediction)
            answer = self.answer(predictions)
            if is_last:
                return Decision(answer, f"{rung.model} is the last rung")
            figures = f"confidence {answer.confidence:.2f}, threshold {rung.threshold:.2f}"
            if answer.confidence >= rung.threshold:
                return Decision(answer, f"{_models_in_words(predictions)} is sure: {figures}")
            why = f"{_models_in_words(predictions)} was not sure: {figures}"
        return Decision(self.answer(predictions), f"{why}; {predictions[-1].model} is the best that ran")

    def answer(self, predictions: Sequence[Prediction]) -> Prediction:
        """Return the joint answer of several models: the normalised geometric mean of their probabilities.

        The answer has the name and embedding of the last model.
        """
        if len(predictions) == 1:
            return predictions[0]
        logs = np.log(np.maximum(np.stack([prediction.probabilities for prediction in predictions]), LEAST_PROBABILITY))
        mean = logs.mean(axis=0)
        mean -= mean.max()
        probabilities = np.exp(mean, mean)
        probabilities /= probabilities.sum()
        return Prediction(predictions[-1].model, probabilities, float(probabilities.max()), predictions[-1].embedding)


def _models_in_words(predictions: Sequence[Prediction]) -> str:
    """Return the models behind an answer, in words."""
    names = [prediction.model for prediction in predictions]
    return names[0] if len(names) == 1 else f"the mean of {' and '.join(names)}"


@dataclass(frozen=True)
class ChosenPoints:
    """Indexes of the offered cascades in LearnedCascades: that of policy `cascade`, and of `cascade:1` and so on."""

    cascade: int
    front: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LearnedCascades:
    """The models, and the most accurate cascade for each limit of the mean cost, the cheapest first."""

    models: tuple[str, ...]
    cascades: list[FittedCascade]

    def rungs(self, index: int) -> tuple[Rung, ...]:
        """Return the rungs of one of `cascades`."""
        fitted = self.cascades[index]
        return rungs_of([self.models[rung] for rung in fitted.rungs], fitted.thresholds[:-1])


class CascadeKind(Kind):
    """Fits a cascade for each limit of the mean cost; one is offered as `cascade`, others as `cascade:1` and so on."""

    name = NAME

    def learn(self, train: Table) -> LearnedCascades:
        """Fit a cascade for each limit of the mean cost."""
        return LearnedCascades(train.models, train.cascades)

    def try_points(self, learned: LearnedCascades, held: Table) -> list[TriedPoint]:
        """Return the results of each learned cascade on held-out images, the cheapest first."""
        points = {fitted: TriedPoint(*replay_cascade(fitted, held.outputs)) for fitted in set(learned.cascades)}
        return [points[fitted] for fitted in learned.cascades]

    def to_part(self, learned: LearnedCascades, chosen: ChosenPoints) -> PolicyPart:
        """Return the chosen cascades as they are stored."""
        front = tuple(learned.rungs(index) for index in chosen.front)
        return PolicyPart(CascadeFacts(learned.rungs(chosen.cascade), front))

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return all offered cascades by name. Raises ValueError if the calibration lacks a model of a rung."""
        by_name = {NAME: part.facts.cascade} | {f"{NAME}:{n}": rungs for n, rungs in enumerate(part.facts.front, 1)}
        for name, rungs in by_name.items():
            check_rungs(name, rungs, calibration)
        return {name: Cascade(name, rungs) for name, rungs in by_name.items()}
