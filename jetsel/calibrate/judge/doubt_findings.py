"""What the report shows of promises: curves, and the classes that are refused most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jetsel.calibrate.judge.findings import DoubtFindings, RefusedClass
from jetsel.calibrate.judge.promises import Doubts, is_given, scores_of

POINTS = 50  # of a curve
MOST_CLASSES = 20
SHOWN_LEVEL = 0.05


def doubt_findings(found: Doubts, shown: Sequence[str], names: Sequence[str], unknown_images: int) -> DoubtFindings:
    """Return what the report shows. shown: the default policy, and the best single model. names: of the classes."""
    shown = list(dict.fromkeys(shown))
    kept = found.promises[shown[0]].kept
    nearest = min(kept, key=lambda one: abs(one.wrong_at_most - SHOWN_LEVEL), default=None)
    classes = []
    if nearest is not None:
        run = found.seen.runs[shown[0]]
        given = is_given(run, found.promises[shown[0]].score, nearest)
        for number in np.unique(found.seen.classes):
            of_class = found.seen.classes == number
            classes.append(RefusedClass(names[number], int(of_class.sum()), float(1 - given[of_class].mean())))
        classes.sort(key=lambda one: (-one.refused, -one.images, one.name))
    return DoubtFindings(
        score=found.choices[shown[0]].name,
        by_score=found.choices[shown[0]].answered,
        promises={name: found.promises[name] for name in shown},
        curves={name: _curve(found, name) for name in shown},
        level=None if nearest is None else nearest.wrong_at_most,
        classes=classes[:MOST_CLASSES],
        unknown_images=unknown_images,
    )


def _curve(found: Doubts, policy: str) -> list[tuple[float, float]]:
    """Return shares of the images that are answered, and of these answers that are wrong, from few to all."""
    run = found.seen.runs[policy]
    assert run.sights is not None
    scores, wrong = scores_of(run, found.promises[policy].score, ()), found.seen.wrong(run)
    order = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
    if not len(order):
        return []
    errors, n = np.cumsum(wrong[order]), len(scores)
    ends = np.unique(np.linspace(max(1, len(order) // POINTS), len(order), POINTS).astype(int))
    return [(float(end / n), float(errors[end - 1] / end)) for end in ends]
