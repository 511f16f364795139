"""A policy fed by hand: its last step, and the decision that it ends with."""

from __future__ import annotations

import pytest

from jetsel.policies.policy import Decision, Prediction, Steps


def ended(steps: Steps, *predictions: Prediction) -> Decision:
    """Return what the policy decides on these predictions; fails where it asks for more."""
    with pytest.raises(StopIteration) as stop:
        steps.send(predictions)
    decision: Decision = stop.value.value
    return decision
