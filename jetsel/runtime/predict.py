"""From what an engine answered to what a policy is told: probabilities and a confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.policies.policy import Prediction, sum_of_five
from jetsel.wire import Criterion


def predict(
    model: str,
    logits: NDArray[np.float32],
    temperature: float,
    criterion: Criterion,
    embedding: NDArray[np.float32] | None = None,
) -> Prediction:
    """Turn logits (classes,) into probabilities at the model's temperature, and read the criterion's confidence."""
    scaled = logits / temperature
    scaled -= np.maximum.reduce(scaled)
    probabilities = np.exp(scaled, scaled)
    total = np.add.reduce(probabilities)
    probabilities /= total
    # The largest scaled logit is 0, and its exponential 1.
    confidence = float(1 / total) if criterion == "top1" else sum_of_five(probabilities)
    return Prediction(model, probabilities, confidence, embedding)
