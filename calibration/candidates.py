"""Candidates of a family beside the models that they come from, as its optimize command makes, records and prints them.

What `jetsel models optimize` does for an owner, with a second set of photographs that chose nothing. Prints Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.candidates import judged
from jetsel.calibrate.gains import Gain, gains_on
from jetsel.calibrate.metrics import mean_interval
from jetsel.calibrate.record import Options, Plan, find, load, loaded_models, record
from jetsel.calibrate.recording import Recording
from jetsel.train.optimize import making
from jetsel.train.optimize.making import facts_of
from jetsel.train.optimize.material import Material
from jetsel.train.optimize.material import Plan as Wanted
from jetsel.train.optimize.recipes import Recipe
from jetsel.zoo import Family, Model

MAX_DROP = 30.0
THETA_POINTS = 0.5


def made(asked: Sequence[Recipe], plan: Wanted) -> dict[str, Model]:
    """Make what is not there yet, and say what cannot be made."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    found = making.make(asked, Material(plan, tell))
    for name, reason in found.failed.items():
        print(f"\n{name} was not made: {reason}")
    return found.models


def recorded(family: Family, photos: Path, file: Path, times: Plan) -> Recording:
    """Record what is not recorded yet, and read it back."""
    with loaded_models(family) as engines:
        found = find(photos, family.labels, None, need_labels=True)
        record(file, family, engines, found, Options(limits=LIMITS, plan=times), tell)
    print()
    return load(file, family).recording


def beside_parents(title: str, test: Recording, models: Mapping[str, Model], fit: Recording) -> None:
    """Print each model on the test photographs, beside the one that it comes from, with the times of `fit`."""
    right, answers = test.right("top1").astype(float), test.logits.argmax(axis=2)
    print(f"\n{title}: {len(test.classes)} photographs; ms as timed with the fit photographs, one thread\n")
    print("| model | top-1 % | beside its parent, points | agrees % | ms | MB | MB gzipped | million operations |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in sorted(test.models, key=lambda name: fit.costs_ms[name]):
        place, fact, derived = test.models.index(name), facts_of(models[name]), models[name].manifest.derived_from
        beside = agrees = ""
        if derived is not None:
            theirs = test.models.index(derived.name)
            gain = 100 * (right[:, place] - right[:, theirs])
            interval = mean_interval(gain)
            beside = f"{gain.mean():+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"
            agrees = f"{100 * (answers[place] == answers[theirs]).mean():.1f}"
        sizes = f"{fact.bytes / 1e6:.2f} | {fact.gzipped_bytes / 1e6:.2f} | {(fact.operations or 0) / 1e6:.0f}"
        share = f"{100 * right[:, place].mean():.2f}"
        print(f"| {name} | {share} | {beside} | {agrees} | {fit.costs_ms[name]:.2f} | {sizes} |")


def chosen(
    title: str,
    group: Sequence[str],
    served: Sequence[str],
    parent: str,
    fit: Recording,
    tests: Mapping[str, Recording],
) -> None:
    """Print which of a group are wanted on folds of the fit photographs, and what cascades gain by those on others."""
    verdict = judged(fit.of_models([*served, *group]), parent, served, MAX_DROP, THETA_POINTS, {})
    print(f"\n## {title}\n\non folds of the fit photographs these are wanted: {', '.join(verdict.entered) or 'none'}")
    print(f"Algorithm 1: {' -> '.join(verdict.algorithm_1)}")
    compared("in ten folds of the fit photographs", verdict.gains)
    for name, test in tests.items():
        compared(f"fitted there, on {name}", gains_on(test, fit, served, verdict.entered))


def compared(title: str, found: Sequence[Gain]) -> None:
    """Print what cascades gain at each mean time."""
    print(f"\n{title}\n")
    print("| within ms | without % | with % | points | as accurate in, times | points then | rungs |")
    print("|---:|---:|---:|---:|---:|---:|---|")
    for gain in found:
        points = f"{gain.points:+.2f} ({gain.points_interval.low:+.2f} to {gain.points_interval.high:+.2f})"
        then = f"{gain.time_points:+.2f} ({gain.time_interval.low:+.2f} to {gain.time_interval.high:+.2f})"
        shares = f"{100 * gain.before:.2f} | {100 * gain.after:.2f}"
        print(
            f"| {gain.budget_ms:.2f} | {shares} | {points} | {gain.time_ratio:.2f} | {then} | {', '.join(gain.rungs)} |"
        )


def with_candidates(family: Family, new: Mapping[str, Model]) -> Family:
    """Return the family with candidates as rungs."""
    return replace(family, models=(*family.models, *new.values()))


def tell(what: str, done: int, total: int) -> None:
    """Print how far a long step came, on one line."""
    print(f"\r{what} {done}/{total}   ", end="", flush=True)
