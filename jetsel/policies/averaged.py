"""A cascade whose rungs answer together: each adds its voice to those that have run already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.policies.cascade import Cascade, CascadeKind
from jetsel.policies.policy import Prediction, sum_of_five
from jetsel.wire import Criterion

LEAST = np.float32(1e-30)  # a probability that float32 rounded to nothing still has a logarithm


@dataclass(frozen=True)
class AveragedCascade(Cascade):
    """The answer is the softmax of the mean of the temperature-scaled logits of all that ran."""

    criterion: Criterion

    def answer(self, heard: Sequence[Prediction]) -> Prediction:
        """Return the geometric mean of the probabilities, which is what the mean of scaled logits gives.

        It goes by the name of the last model, the most expensive of them.
        """
        if len(heard) == 1:
            return heard[0]
        logs = np.log(np.maximum(np.stack([prediction.probabilities for prediction in heard]), LEAST))
        mean = logs.mean(axis=0)
        mean -= mean.max()
        probabilities = np.exp(mean, mean)
        probabilities /= probabilities.sum()
        confidence = float(probabilities.max()) if self.criterion == "top1" else sum_of_five(probabilities)
        return Prediction(heard[-1].model, probabilities, confidence, heard[-1].embedding)

    def who(self, heard: Sequence[Prediction]) -> str:
        """Return whose answer that is, in words."""
        names = [prediction.model for prediction in heard]
        return names[0] if len(names) == 1 else f"the mean of {' and '.join(names)}"


AVERAGED = CascadeKind(
    "cascade-averaged",
    lambda rungs, criterion: AveragedCascade("cascade-averaged", rungs, criterion),
    averaged=True,
)
