"""Policies fed by hand: what models say, and the decision that a policy ends with."""

import numpy as np
import pytest

from jetsel.policies.policy import Decision, Evidence, Prediction, Steps
from jetsel.premodel import Scaling

NOTHING = Evidence(features=None, fallback=None)
WHOLE = Scaling(np.zeros(1, np.float32), np.ones(1, np.float32))


def said(model: str, confidence: float) -> Prediction:
    """What a model says of two classes, so sure of the first."""
    return Prediction(model, np.array([confidence, 1 - confidence], np.float32), confidence)


def at(place: float, fallback: str | None = "l") -> Evidence:
    """A photograph with one feature."""
    return Evidence(np.array([place], np.float32), fallback)


def ended(steps: Steps, *predictions: Prediction) -> Decision:
    """Return what the policy decides on these predictions; fails where it asks for more."""
    with pytest.raises(StopIteration) as stop:
        steps.send(predictions)
    decision: Decision = stop.value.value
    return decision
