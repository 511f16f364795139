"""What policies give on images that nothing was fitted on, each at the operating point that a mean time allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.imagenet.reproduce import mixed
from calibration.papers.multiplexer.edge import Taught
from calibration.papers.multiplexer.local import chances_of
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes
from jetsel.policies.multiplexer import NAME, additional_costs
from jetsel.policies.registry import KIND
from jetsel.premodel import is_right, worthiest

BUDGETS = (1.0, 0.75, 0.5, 0.3)  # of the time of the most expensive model
BESIDE, AVERAGED = "cascade", "averaging all above T"
SHOWN = (BESIDE, NAME, AVERAGED)
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def at_equal_time(learned: Taught, test: Recording) -> list[str]:
    """Return a row for each mean time and policy: fitted and chosen on the images of `learned`, judged on `test`.

    Of operating points that keep the mean time there, held out for the multiplexer, the most accurate there.
    """
    fit, right, costs_ms = learned.train, test.right, test.costs("time")
    rows = []
    for share in BUDGETS:
        budget_ms = share * float(fit.costs("time").max())
        chosen = {name: _best(name, learned, test, budget_ms) for name in SHOWN}
        beside = chosen[BESIDE]
        for name, found in chosen.items():
            if found is None or beside is None:
                rows.append(f"{share:g} | {name} | none is as fast | | | ")
                continue
            gain = "" if name == BESIDE else _points(found.correct.astype(float) - beside.correct)
            mix = _points(found.correct - mixed(right, costs_ms, max(float(found.time_ms.mean()), costs_ms.min())))
            rows.append(f"{share:g} | {name} | {_share(found.correct)} | {found.time_ms.mean():.2f} | {gain} | {mix}")
    return rows


def as_in_the_paper(learned: Taught, test: Recording) -> list[str]:
    """Return rows at the paper's own settings: argmax, and T = 0.5."""
    _, chances = chances_of(learned, test)
    right, costs_ms = test.right, test.costs("time")
    best = chances.argmax(axis=1)
    ran = np.zeros_like(right)
    ran[np.arange(len(best)), best] = ran[:, 0] = True
    rows = [f"argmax | {_share(right[np.arange(len(best)), best])} | {(ran @ costs_ms).mean():.2f}"]
    found = _averaged(test, learned, chances, 0.5)
    rows.append(f"{AVERAGED} = 0.5 | {_share(found.correct)} | {found.time_ms.mean():.2f}")
    rows.append(f"{test.models[-1]} alone | {_share(right[:, -1])} | {costs_ms[-1]:.2f}")
    return rows


def break_even(learned: Taught) -> list[str]:
    """Return a row for each mean time: what a multiplexer may cost before the cascade, and what this one adds.

    That is the first rung's time, times the share that goes on from it. Nothing is added if that rung is what it reads.
    """
    fit, lines = learned.train, []
    for share in BUDGETS:
        budget_ms = share * float(fit.costs("time").max())
        tried = KIND[BESIDE].try_points(learned.policies[BESIDE], learned.table)
        place = _place([Outcomes.of(fit, one.correct, one.ran) for one in tried], budget_ms)
        if place is None:
            continue
        fitted = learned.policies[BESIDE].cascades[place]
        names = [learned.policies[BESIDE].models[rung] for rung in fitted.rungs]
        ran = tried[place].ran
        goes_on, first_ms = float((ran.sum(axis=1) > 1).mean()), fit.costs_ms[names[0]]
        adds_ms = 0.0 if names[0] == fit.models[0] else fit.costs_ms[fit.models[0]]
        could = "yes" if adds_ms < goes_on * first_ms else "no"
        lines.append(
            f"{share:g} | {', '.join(names)} | {first_ms:.2f} | {100 * goes_on:.0f} % | "
            f"{goes_on * first_ms:.2f} | {adds_ms:.2f} | {could}"
        )
    return lines


def _tried(name: str, learned: Taught, recording: Recording) -> list[Outcomes]:
    """Every operating point; of the multiplexer's on its own images, by what it said of them held out."""
    held_out, chances = chances_of(learned, recording)
    own = recording is learned.train
    if name == AVERAGED:
        return [_averaged(recording, learned, held_out if own else chances, one) for one in THRESHOLDS]
    if name == NAME and own:
        return [_priced(recording, held_out, price) for price in learned.policies[NAME].prices]
    tried = KIND[name].try_points(learned.policies[name], recording.table(learned.temperatures))
    return [Outcomes.of(recording, one.correct, one.ran) for one in tried]


def _priced(recording: Recording, chances: NDArray[np.floating], price: float) -> Outcomes:
    which = worthiest(chances, additional_costs(recording.costs()), price)
    ran = np.zeros_like(recording.right)
    ran[np.arange(len(which)), which] = ran[:, 0] = True
    return Outcomes(recording.right[np.arange(len(which)), which], ran @ recording.costs("time"))


def _averaged(recording: Recording, learned: Taught, chances: NDArray[np.floating], threshold: float) -> Outcomes:
    """Algorithm 2: the mean of all models whose chance is above T, of the likeliest if none is."""
    chosen = chances > threshold
    none = ~chosen.any(axis=1)
    chosen[none, chances[none].argmax(axis=1)] = True
    odds = [np.exp(one) for one in recording.table(learned.temperatures).log_odds]
    total = np.sum([mask[:, None] * one for mask, one in zip(chosen.T, odds, strict=True)], axis=0)
    chosen[:, 0] = True
    return Outcomes(is_right(total, recording.classes), chosen @ recording.costs("time"))


def _best(name: str, learned: Taught, test: Recording, budget_ms: float) -> Outcomes | None:
    place = _place(_tried(name, learned, learned.train), budget_ms)
    return None if place is None else _tried(name, learned, test)[place]


def _place(tried: list[Outcomes], budget_ms: float) -> int | None:
    """Return the most accurate within a mean time, of equals the first; None if none is as fast."""
    within = [place for place, one in enumerate(tried) if one.time_ms.mean() <= budget_ms]
    return max(within, key=lambda place: float(tried[place].correct.mean()), default=None)


def _share(correct: NDArray[np.bool_]) -> str:
    interval = share_interval(correct)
    return f"{100 * correct.mean():.2f} ({100 * interval.low:.2f} to {100 * interval.high:.2f})"


def _points(each: NDArray[np.float64]) -> str:
    gain, low, high = bootstrap(each)
    return f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
