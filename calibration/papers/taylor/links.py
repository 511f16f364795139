"""What the chain of votes gives by its links, under top-1 and top-5, beside many neighbours; and what fitting takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.reproduce import mixed
from calibration.papers.tables import table
from calibration.papers.taylor.paper_chain import PAPER_LINKS
from calibration.papers.taylor.readers import points
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Seen, Trial, Wish, as_accurate, within
from calibration.papers.taylor.ways import MANY_NEIGHBOURS, priced, voting
from calibration.starter.calibrate import fitted
from jetsel.features import PAPER_SEVEN

COLUMNS = (
    "premodel | first link right, % | right, % | ms | in doubt, % | beside the best single, points | "
    "beside the best mix of two in its time, points | time of the best single over its own"
)


def links(study: Study) -> Iterator[str]:
    """Give the tables of one family."""
    counted = f"{study.family.name}, ten folds over {len(study.right)} images"
    yield table(f"{counted}: top-1, by the first link", COLUMNS, [*_rows(study, 1), *_many(study)])
    yield table(f"{counted}: top-5, the premodel fitted for it", COLUMNS, list(_rows(study.at_top5(), 5)))
    yield table(f"{study.family.name}: what training takes", "step | seconds", list(_training(study)))


def greedy(right: NDArray[np.bool_], first: int) -> list[int]:
    """Return links after the first as Algorithm 1 adds them: the most accurate on what fails, among larger models.

    right: (n, m), the cheapest model first. As many links as the paper has, or as there are.
    """
    chosen = [first]
    while len(chosen) < min(PAPER_LINKS, right.shape[1] - first):
        failing = ~right[:, chosen].any(axis=1)
        left = [one for one in range(first + 1, right.shape[1]) if one not in chosen]
        chosen.append(max(left, key=lambda one: int((right[:, one] & failing).sum())))
    return sorted(chosen)


def _rows(study: Study, first_answers: int) -> Iterator[str]:
    """Yield a row for each model that may be the first link."""
    models, features_ms = study.recording.models, study.clock(PAPER_SEVEN)
    for first in range(len(models) - 1):
        way = voting([models[place] for place in greedy(study.right, first)], features_ms)
        seen = Trial(way, study.recording, study.folds, study.test).held_out(as_accurate())
        correct = seen.correct if first_answers == 1 else seen.is_top5
        yield _row(study, way.name, f"{100 * study.right[:, first].mean():.1f}", seen, correct)


def _many(study: Study) -> Iterator[str]:
    """Yield rows of the same cached neighbours, many of them, read as shares of right answers less a price of time."""
    way = priced(f"{MANY_NEIGHBOURS}, priced", PAPER_SEVEN, study.clock(PAPER_SEVEN), (MANY_NEIGHBOURS,))
    trial, slowest_ms = Trial(way, study.recording, study.folds, study.test), float(study.costs_ms.max())
    wishes: list[Wish] = [as_accurate(), *(within(part * slowest_ms, f"{part:g} of the time") for part in (0.6, 0.3))]
    for wish in wishes:
        seen = trial.held_out(wish)
        yield _row(study, f"{way.name}: {wish.name}", "", seen, seen.correct)


def _row(study: Study, name: str, first: str, seen: Seen, correct: NDArray[np.bool_]) -> str:
    costs, best = study.costs_ms, int(study.right.mean(axis=0).argmax())
    mean_ms, ours = float(seen.time_ms.mean()), correct.astype(float)
    mix = mixed(study.right, costs, max(mean_ms, costs.min()))
    return (
        f"{name} | {first} | {100 * ours.mean():.1f} | {mean_ms:.2f} | {100 * seen.in_doubt.mean():.0f} | "
        f"{points(ours - study.right[:, best])} | {points(ours - mix)} | {costs[best] / mean_ms:.2f}"
    )


def _training(study: Study) -> Iterator[str]:
    """Yield what recording all images takes, and fitting: processor time of one thread."""
    n, some = len(study.right), np.arange(1)
    yield f"every model once on each of {n} images | {n * study.costs_ms.sum() / 1e3:.0f}"
    way = voting(study.recording.models[:PAPER_LINKS], 0.0)
    published = _seconds(lambda: way.tried(study.recording, study.recording.take(some)))
    yield f"the premodel as published: votes and scaled features | {published:.2f}"
    whole = _seconds(lambda: fitted(study.family, study.loaded))
    yield f"all policies of `jetsel calibrate`, compared in folds | {whole:.0f}"


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
