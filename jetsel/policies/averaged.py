"""A cascade whose rungs answer together: each adds its voice to those that have run already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.errors import ModelUnavailableError
from jetsel.policies.cascade import CascadeKind, Ladder, rungs_of
from jetsel.policies.policy import Decision, Evidence, Prediction, Run, Steps, sum_of_five
from jetsel.wire import Criterion

LEAST = np.float32(1e-30)  # a probability that float32 rounded to nothing still has a logarithm


@dataclass(frozen=True)
class AveragedCascade(Ladder):
    """The answer is the softmax of the mean of the temperature-scaled logits of all that ran."""

    criterion: Criterion

    @classmethod
    def of(cls, name: str, models: Sequence[str], thresholds: Sequence[float], criterion: Criterion) -> AveragedCascade:
        """Build from models and the thresholds of all but the last."""
        return cls(name, rungs_of(models, thresholds), criterion)

    def __call__(self, photo: Evidence) -> Steps:
        """Climb until those that ran are sure together. An unavailable rung is passed over: the others answer."""
        heard: list[Prediction] = []
        why = "first rung"
        for rung in self.rungs:
            try:
                (seen,) = yield Run((rung.model,), why)
            except ModelUnavailableError:
                if rung is self.rungs[-1] and not heard:
                    raise
                why = f"{rung.model} is unavailable"
                continue
            heard.append(seen)
            together = mean_of(heard, self.criterion)
            names = " and ".join(prediction.model for prediction in heard)
            if rung is self.rungs[-1]:
                return Decision(together, f"{names} together: {rung.model} is the last rung")
            if together.confidence >= rung.threshold:
                sure = f"{together.confidence:.2f} of at least {rung.threshold:.2f}"
                return Decision(together, f"{names} {'is' if len(heard) == 1 else 'are together'} sure: {sure}")
            why = f"{names} not sure: {together.confidence:.2f} of {rung.threshold:.2f}"
        return Decision(mean_of(heard, self.criterion), f"{why}; the others answer")


def mean_of(heard: Sequence[Prediction], criterion: Criterion) -> Prediction:
    """Average predictions: the geometric mean of the probabilities, which is what the mean of scaled logits gives.

    It goes by the name of the last model, the most expensive of them.
    """
    if len(heard) == 1:
        return heard[0]
    logs = np.log(np.maximum(np.stack([prediction.probabilities for prediction in heard]), LEAST))
    mean = logs.mean(axis=0)
    mean -= mean.max()
    probabilities = np.exp(mean, mean)
    probabilities /= probabilities.sum()
    confidence = float(probabilities.max()) if criterion == "top1" else sum_of_five(probabilities)
    return Prediction(heard[-1].model, probabilities, confidence, heard[-1].embedding)


AVERAGED = CascadeKind(
    "cascade-averaged",
    lambda rungs, criterion: AveragedCascade("cascade-averaged", rungs, criterion),
    averaged=True,
)
