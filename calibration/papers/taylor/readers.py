"""The strongest reader of features, and the policies that were dropped, beside mixes of single models and the cascade.

Everything is learned on folds of the images that are fitted on, and its operating point is chosen on the folds that it
is not judged on; on the test images both come from all of those.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.imagenet.reproduce import mixed
from calibration.papers.area import area_under_curve
from calibration.papers.tables import table
from calibration.papers.taylor.selection import lift_of, time_price
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Seen, Trial, Wish, as_accurate, at_price, within
from calibration.papers.taylor.ways import (
    READERS,
    cascade,
    chain,
    chain_paper,
    priced,
    single,
    skipping,
    strongest,
)
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.features import PAPER_NAMES, PAPER_SEVEN

BUDGETS = (0.75, 0.5, 0.3)  # of the time of the most expensive model
COLUMNS = (
    "policy | wish | top-1 % | ms | in doubt, % | beside its own shares dealt at random, points | "
    "beside the best mix of two models in its time | beside the cascade in its time"
)


def strengths(study: Study) -> Iterator[str]:
    """Give the tables of one family."""
    trials, rows = Trials(study), []
    name, n = study.family.name, len(study.right)
    everything = np.ones(n, bool)
    listed = trials.listed()
    for way, wish in listed:
        rows.append(trials.row(way, wish, "fit", everything))
    yield table(f"{name}: ten folds over {n} images", COLUMNS, rows)
    for kind in sorted(set(study.kinds)):
        chosen = study.kinds == kind
        rows = [trials.row(way, wish, "test", chosen) for way, wish in listed]
        yield table(f"{name}: {chosen.sum()} other images, {kind}", COLUMNS, rows)
    yield table(f"{name}: what the folds chose", "policy | wish | readers", trials.preferred())
    for title, rows in areas(study).items():
        yield table(f"{name}: {title}", "reader | AUC", rows)


class Trials:
    """Every way of one family, learned once."""

    def __init__(self, study: Study) -> None:
        plan, all_ms = study.plan, study.clock()
        ways = (
            strongest(all_ms),
            priced("boosted", plan.features, plan.features_ms, ("boosted trees",)),
            chain(plan, "chain-right"),
            skipping(plan),
            chain(plan),
            chain_paper(study.clock(PAPER_SEVEN)),
            cascade(),
            single(),
        )
        self._study = study
        self._trials = {way.name: Trial(way, study.recording, study.folds, study.test) for way in ways}
        self._wishes = _wishes(study)

    def listed(self) -> list[tuple[str, Wish]]:
        """Every policy at every wish that it is shown at: the strongest reader at all."""
        names = list(self._trials)
        goal = self._wishes[0]
        return [(names[0], wish) for wish in self._wishes] + [(name, goal) for name in names[1:]]

    def row(self, way: str, wish: Wish, images: str, rows: NDArray[np.bool_]) -> str:
        """Return a row: what a way gives on some of the images, with 95 % intervals."""
        study = self._study
        right = (study.right if images == "fit" else study.test.right)[rows]
        seen = self._seen(way, wish, images).of(rows)
        mean_ms, correct = float(seen.time_ms.mean()), seen.correct.astype(float)
        beside = self._seen("cascade", within(mean_ms, "its time"), images).of(rows)
        interval = share_interval(seen.correct)
        runs_one = bool((seen.ran.sum(axis=1) == 1).all())
        lift = points(lift_of(seen.column, right)) if runs_one else "several run"
        return (
            f"{way} | {wish.name} | {100 * correct.mean():.2f} ({100 * interval.low:.2f} to {100 * interval.high:.2f})"
            f" | {mean_ms:.2f} | {100 * seen.in_doubt.mean():.0f} | {lift} | "
            f"{points(correct - mixed(right, study.costs_ms, max(mean_ms, study.costs_ms.min())))} | "
            + ("" if way == "cascade" else points(correct - beside.correct))
        )

    def preferred(self) -> list[str]:
        """Return which reader the folds chose for each wish."""
        name, rows = next(iter(self._trials)), []
        for wish in self._wishes:
            picked = self._trials[name].held_out(wish).points
            rows.append(f"{name} | {wish.name} | " + ", ".join(f"{one} {picked.count(one)}" for one in READERS))
        return rows

    def _seen(self, way: str, wish: Wish, images: str) -> Seen:
        trial = self._trials[way]
        return trial.held_out(wish) if images == "fit" else trial.on_others(wish)


def _wishes(study: Study) -> list[Wish]:
    slowest_ms = float(study.costs_ms.max())
    price = time_price(study.right, study.costs_ms)
    budgets = [within(share * slowest_ms, f"{share:g} of the largest model's time") for share in BUDGETS]
    return [as_accurate(), at_price(price), *budgets]


def areas(study: Study) -> dict[str, list[str]]:
    """Return, by what is predicted, a row for each reader of features and for confidence: AUC on held-out images."""
    right, n = study.right, len(study.right)
    likely = {name: np.zeros_like(right, float) for name in READERS}
    for held, train, others in study.folds:
        for name, reader in READERS.items():
            likely[name][held] = reader(train, others, PAPER_NAMES)
    confidence = study.recording.confidences(fit_temperatures(study.recording)).astype(np.float64)
    models, best = study.recording.models, int(right.mean(axis=0).argmax())
    gains = right[:, best] & ~right[:, 0]
    found: dict[str, list[str]] = {}
    for title, truth, read, own in (
        (f"where {models[0]} is right, {n} images held out", right[:, 0], 0, confidence[:, 0]),
        (f"where {models[best]} is right and {models[0]} is not, {n} images held out", gains, best, -confidence[:, 0]),
    ):
        scores = {
            f"{name}, 29 features": one[:, 0] if read == 0 else one[:, read] - one[:, 0] for name, one in likely.items()
        }
        scores[f"confidence of {models[0]}, once it ran"] = own
        found[title] = [f"{name} | {area(truth, said)}" for name, said in scores.items()]
    return found


def area(truth: NDArray[np.bool_], said: NDArray[np.floating], draws: int = 1000) -> str:
    """Return the area under the curve and its 95 % interval by a bootstrap over images, both (n,)."""
    draw, found = np.random.default_rng(2018), []
    for _ in range(draws):
        rows = draw.integers(0, len(truth), len(truth))
        one = area_under_curve(truth[rows], said[rows])
        if one is not None:
            found.append(one)
    low, high = np.quantile(found, [0.025, 0.975])
    return f"{area_under_curve(truth, said):.3f} ({low:.3f} to {high:.3f})"


def points(each: NDArray[np.float64]) -> str:
    """Return the mean of paired differences (n,) in points, with its 95 % interval."""
    gain, low, high = bootstrap(each)
    return f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
