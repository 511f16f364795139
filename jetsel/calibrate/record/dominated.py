"""Find dominated models: a cheaper model is right nearly wherever they are, so their recording stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.binomial import tail
from jetsel.calibrate.record.database import Store

LEAST_IMAGES = 300
MOST_SHARE = 0.01  # largest share of images on which only the dominated model is right
RISK = 0.05  # that the true share is larger (one-sided; Clopper and Pearson, Biometrika 26, 1934)
CHEAPER = 0.9  # largest ratio of times: of two equally fast models, both are kept


class Dominated(NamedTuple):
    """A model, and a cheaper one that is right wherever the model is, except on fewer than 1 % of the images."""

    model: str
    by: str


def dominated(right: Mapping[str, NDArray[np.bool_]], times_ms: Mapping[str, float]) -> list[Dominated]:
    """Return the dominated models, the most expensive first. right: by model, (n,). times_ms: by model."""
    dominated_models: list[Dominated] = []
    left = sorted(right, key=times_ms.__getitem__, reverse=True)
    for model in list(left):
        for other in reversed(left):  # the cheapest first
            if times_ms[other] > CHEAPER * times_ms[model]:
                break
            alone = int((right[model] & ~right[other]).sum())
            if tail(alone, len(right[model]), MOST_SHARE) < RISK:
                dominated_models.append(Dominated(model, other))
                left.remove(model)
                break
    return dominated_models


def right_of(store: Store) -> dict[str, NDArray[np.bool_]]:
    """Return whether each wanted model is right, (n,) by name, on the labelled images that all of them answered."""
    execute = store.connection.execute
    complete = (
        "SELECT id FROM photographs JOIN chosen USING (sha256) WHERE class IS NOT NULL AND (SELECT COUNT(*) FROM"
        " predictions WHERE photograph = id AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    )
    right_by_model: dict[str, list[bool]] = {}
    for name, number, logits in execute(
        "SELECT name, class, logits FROM predictions JOIN wanted ON wanted.id = model"
        f" JOIN photographs p ON p.id = photograph WHERE p.id IN ({complete}) ORDER BY p.id"
    ):
        right_by_model.setdefault(name, []).append(int(np.frombuffer(logits, "<f2").argmax()) == number)
    return {name: np.array(values) for name, values in right_by_model.items()}
