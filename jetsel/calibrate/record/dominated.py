"""Models that a cheaper one makes superfluous: they are recorded no further."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.binomial import most_likely_share
from jetsel.calibrate.record.database import Store

LEAST_IMAGES = 300
MOST_SHARE = 0.01  # of the images on which only the dearer model is right
CHEAPER = 0.9  # of the dearer model's time, at most: two that take the same time are no reason to lose one


class Dominated(NamedTuple):
    """A model and the cheaper one that is right wherever it is, but for fewer than 1 % of the images."""

    model: str
    by: str


def dominated(right: Mapping[str, NDArray[np.bool_]], times_ms: Mapping[str, float]) -> list[Dominated]:
    """Return the models that are not worth recording, the dearest first. right: by model, (n,). times_ms: by model.

    None of those that stand for another is returned itself.
    """
    dominated_models: list[Dominated] = []
    left = sorted(right, key=times_ms.__getitem__, reverse=True)
    for model in list(left):
        for other in reversed(left):  # the cheapest first
            if times_ms[other] > CHEAPER * times_ms[model]:
                break
            alone = int((right[model] & ~right[other]).sum())
            if most_likely_share(alone, len(right[model])) < MOST_SHARE:
                dominated_models.append(Dominated(model, other))
                left.remove(model)
                break
    return dominated_models


def right_of(store: Store) -> dict[str, NDArray[np.bool_]]:
    """Return where each wanted model's first answer is the label, on the labelled images that all of them have seen."""
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
