"""Models that a cheaper one makes superfluous: they are recorded no further."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.record.database import Store

LEAST_IMAGES = 300
MOST_SHARE = 0.01  # of the images on which only the dearer model is right
CHEAPER = 0.9  # of the dearer model's time, at most: two that take the same time are no reason to lose one
SURE = 0.95  # one-sided


class Dominated(NamedTuple):
    """A model and the cheaper one that is right wherever it is, but for fewer than 1 % of the images."""

    model: str
    by: str


def most_likely_share(count: int, n: int) -> float:
    """Return the upper end of the one-sided 95 % interval of a share, of which `count` of n were seen.

    Clopper and Pearson, Biometrika 26, 1934: the share at which so few are seen with a probability of 5 %.
    """
    low, high = count / n, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(count, n, middle) > 1 - SURE else (low, middle)
    return high


def _at_most(count: int, n: int, share: float) -> float:
    """Return the probability of at most `count` of n, each with this share's probability."""
    if share >= 1:
        return float(count >= n)
    logs = np.log(share) * np.arange(count + 1) + np.log1p(-share) * (n - np.arange(count + 1))
    choose = np.concatenate([[0.0], np.cumsum(np.log((n - np.arange(count)) / np.arange(1, count + 1)))])
    return float(np.exp(logs + choose).sum())


def dominated(right: Mapping[str, NDArray[np.bool_]], times_ms: Mapping[str, float]) -> list[Dominated]:
    """Return the models that are not worth recording, the dearest first. right: by model, (n,). times_ms: by model.

    None of those that stand for another is returned itself.
    """
    found: list[Dominated] = []
    left = sorted(right, key=times_ms.__getitem__, reverse=True)
    for model in list(left):
        for other in reversed(left):  # the cheapest first
            if times_ms[other] > CHEAPER * times_ms[model]:
                break
            alone = int((right[model] & ~right[other]).sum())
            if most_likely_share(alone, len(right[model])) < MOST_SHARE:
                found.append(Dominated(model, other))
                left.remove(model)
                break
    return found


def right_of(store: Store) -> dict[str, NDArray[np.bool_]]:
    """Return where each wanted model's first answer is the label, on the labelled images that all of them have seen."""
    execute = store.connection.execute
    seen = (
        "SELECT id FROM photographs JOIN chosen USING (sha256) WHERE class IS NOT NULL AND (SELECT COUNT(*) FROM"
        " predictions WHERE photograph = id AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    )
    found: dict[str, list[bool]] = {}
    for name, number, logits in execute(
        "SELECT name, class, logits FROM predictions JOIN wanted ON wanted.id = model"
        f" JOIN photographs p ON p.id = photograph WHERE p.id IN ({seen}) ORDER BY p.id"
    ):
        found.setdefault(name, []).append(int(np.frombuffer(logits, "<f2").argmax()) == number)
    return {name: np.array(values) for name, values in found.items()}
