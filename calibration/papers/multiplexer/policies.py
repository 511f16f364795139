"""What policies give on photographs that nothing was fitted on, each at the operating point that a mean time allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.imagenet.reproduce import mixed
from jetsel.calibrate.assemble import Identity, assemble
from jetsel.calibrate.goal import Outcomes
from jetsel.calibrate.held_out import Learned, fit_temperatures, learn, try_out
from jetsel.calibrate.metrics import share_interval
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import replay_all
from jetsel.features import PAPER_SEVEN, table_hash
from jetsel.policies.kind import Plan
from jetsel.policies.registry import KIND

BUDGETS = (1.0, 0.75, 0.5, 0.3)  # of the time of the most expensive model
BESIDE = "cascade"
SHOWN = (BESIDE, "multiplexer", "multiplexer-ensemble", "multiplexer-cascade")


def at_equal_time(fit: Recording, test: Recording) -> list[str]:
    """Return a row for each mean time and policy: fitted and chosen on `fit`, judged on `test`.

    The multiplexer's time is in. Of operating points that keep the mean time on `fit`, the most accurate there.
    """
    learned = learned_from(fit)
    right, costs_ms = test.right("top1"), test.costs("time")
    rows = []
    for share in BUDGETS:
        budget_ms = share * float(fit.costs("time").max())
        chosen = {name: _best(name, learned, fit, test, budget_ms) for name in SHOWN}
        beside = chosen[BESIDE]
        for name, found in chosen.items():
            if found is None or beside is None:
                rows.append(f"{budget_ms:.2f} | {name} | none is as fast | | | |")
                continue
            gain = "" if name == BESIDE else _points(found.correct.astype(float) - beside.correct)
            mix = _points(found.correct - mixed(right, costs_ms, max(float(found.time_ms.mean()), costs_ms.min())))
            shown = f"{_share(found.correct)} | {found.time_ms.mean():.2f}"
            rows.append(f"{budget_ms:.2f} | {name} | {shown} | {gain} | {mix}")
    return rows


def as_in_the_paper(test: Recording) -> list[str]:
    """Return a row for each multiplexer policy at the paper's own settings: argmax, and T = 0.5. Called shares too."""
    mux, right = test.multiplexer, test.right("top1")
    assert mux is not None
    columns = [test.models.index(name) for name in mux.models]
    best = mux.chances.argmax(axis=1)
    correct = right[np.arange(len(best)), np.array(columns)[best]]
    called = np.bincount(best, minlength=len(columns)) / len(best)
    shares = ", ".join(f"{name} {100 * share:.0f}" for name, share in zip(mux.models, called, strict=True))
    costs_ms = test.costs("time")[columns]
    rows = [f"argmax | {_share(correct)} | {costs_ms[best].mean() + mux.cost_ms:.2f} | {shares}"]
    above = (mux.chances > 0.5).sum(axis=1)
    rows.append(
        f"models above T = 0.5 | none on {100 * (above == 0).mean():.0f} % | | {above.mean():.2f} of {len(columns)}"
    )
    return rows


def break_even(fit: Recording) -> list[str]:
    """Return a row for each mean time: what a multiplexer may cost before the cascade, and what it does.

    That is the first rung's time, times the share that goes on from it.
    """
    learned, mux = learned_from(fit), fit.multiplexer
    assert mux is not None
    lines = []
    for share in BUDGETS:
        budget_ms = share * float(fit.costs("time").max())
        tried = try_out(KIND[BESIDE], learned, fit)
        place = _place(tried, budget_ms)
        if place is None:
            continue
        fitted = learned.policies[BESIDE].cascades[place]
        names = [learned.policies[BESIDE].models[rung] for rung in fitted.rungs]
        ran = KIND[BESIDE].tried(learned.policies[BESIDE], fit.table("top1", learned.temperatures))[place].ran
        goes_on = float((ran.sum(axis=1) > 1).mean())
        first_ms = fit.costs_ms[names[0]]
        limit_ms = goes_on * first_ms
        verdict = "it could" if mux.cost_ms < limit_ms else "not even a perfect one could"
        lines.append(
            f"{budget_ms:.2f} | {', '.join(names)} | {first_ms:.2f} | {100 * goes_on:.0f} % | {limit_ms:.2f} | "
            f"{mux.cost_ms:.2f} | {verdict}"
        )
    return lines


def beside_the_premodel(fit: Recording, test: Recording) -> list[str]:
    """Return a row for the chain of Taylor et al. with its own settings, and for the cascade in its time.

    What its features take is not counted, in its favour.
    """
    learned = learned_from(fit)
    kind, temperatures = KIND["chain-paper"], learned.temperatures
    names = dict.fromkeys(fit.models, "its file")
    identity = Identity("family", "its labels", names, table_hash(), 1, 1)
    only = replace(
        learned,
        train=replace(fit, multiplexer=None),
        policies=dict.fromkeys(KIND) | {kind.name: learned.policies[kind.name]},
    )
    calibration = assemble(identity, {"top1": only}, {"top1": {}})
    policy = kind.make(calibration.parts[kind.name], calibration)["top1"]
    run = replay_all(policy, test, range(len(test.classes)), "top1", temperatures, test.models[-1])
    correct, mean_ms = (run.answered == test.classes).astype(float), float(run.models_ms.mean())
    rows = [f"{kind.name} | {100 * correct.mean():.2f} | {mean_ms:.2f} | "]
    beside = _best(BESIDE, learned, fit, test, mean_ms)
    if beside is not None:
        gain = _points(correct - beside.correct)
        rows.append(f"{BESIDE} | {100 * beside.correct.mean():.2f} | {beside.time_ms.mean():.2f} | {gain}")
    return rows


def learned_from(fit: Recording) -> Learned:
    """Learn every policy from one recording."""
    plan = Plan(PAPER_SEVEN, 1)
    return learn(fit, "top1", plan, fit_temperatures(fit))


def _best(name: str, learned: Learned, fit: Recording, test: Recording, budget_ms: float) -> Outcomes | None:
    place = _place(try_out(KIND[name], learned, fit), budget_ms)
    return None if place is None else try_out(KIND[name], learned, test)[place]


def _place(tried: list[Outcomes], budget_ms: float) -> int | None:
    """Return the most accurate within a mean time, of equals the first; None where none is as fast."""
    within = [place for place, one in enumerate(tried) if one.time_ms.mean() <= budget_ms]
    return max(within, key=lambda place: float(tried[place].correct.mean()), default=None)


def _share(correct: NDArray[np.bool_]) -> str:
    interval = share_interval(correct)
    return f"{100 * correct.mean():.2f} ({100 * interval.low:.2f} to {100 * interval.high:.2f})"


def _points(each: NDArray[np.float64]) -> str:
    gain, low, high = bootstrap(each)
    return f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
