"""Candidates of a family beside the models that they come from, as its optimize command makes, records and prints them.

A second set of photographs, which chose nothing, judges too. Prints Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibration.measures import mean_interval
from calibration.optimizing import making
from calibration.optimizing.making import facts_of
from calibration.optimizing.material import Material, OptimizePlan
from calibration.optimizing.recipes import Recipe
from calibration.optimizing.verdict import Compare, judged
from calibration.starter.calibrate import LIMITS, fitted, of_models
from jetsel.calibrate.calibrating import Calibrated
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import find_images
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes, replay_all
from jetsel.calibrate.record.workers import Observer
from jetsel.policies.registry import catalogue
from jetsel.zoo import Family, Model

MAX_DROP = 30.0
THETA_POINTS = 0.5


def made(asked: Sequence[Recipe], plan: OptimizePlan) -> dict[str, Model]:
    """Make what is not there yet, and say what cannot be made."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    found = making.make(asked, Material(plan, tell))
    for name, reason in found.failed.items():
        print(f"\n{name} was not made: {reason}")
    return found.models


def recorded(family: Family, photos: Path, file: Path, times: TimingPlan) -> Recording:
    """Record what is not recorded yet, and read it back."""
    with loaded_models(family) as engines:
        found = find_images(photos, family.labels, None, need_labels=True)
        record(file, family, engines, found, RecordOptions(limits=LIMITS, plan=times), Observer(tell))
    print()
    return load(file, family).recording


def beside_parents(title: str, test: Recording, models: Mapping[str, Model], fit: Recording) -> None:
    """Print each model on the test photographs, beside the one that it comes from, with the times of `fit`."""
    right, answers = test.right.astype(float), test.logits.argmax(axis=2)
    print(f"\n{title}: {len(test.classes)} photographs; ms as timed with the fit photographs, one thread\n")
    print("| model | top-1 % | beside its parent, points | agrees % | ms | MB | MB gzipped | million operations |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in sorted(test.models, key=lambda name: fit.costs_ms[name]):
        place, fact = test.models.index(name), facts_of(models[name])
        derived = models[name].manifest.provenance.derived_from
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


def comparing(family: Family, file: Path) -> Compare:
    """Return what fits and compares every policy over some models of a recording."""
    whole = load(file, family)

    def compare(names: Sequence[str]) -> Calibrated:
        return fitted(family, load(file, family, tuple(name for name in whole.recording.models if name in names)))

    return compare


def chosen(
    title: str,
    group: Sequence[str],
    served: Sequence[str],
    parent: str,
    fit: Recording,
    tests: Mapping[str, Recording],
    compare: Compare,
) -> None:
    """Print which of a group are wanted on folds of the fit images, and what the best policy with them gives on others.

    compare: fits on the fit images, over these models.
    """
    verdict = judged(of_models(fit, [*served, *group]), parent, served, MAX_DROP, THETA_POINTS, {}, compare)
    print(f"\n## {title}\n\non folds of the fit images these are wanted: {', '.join(verdict.entered) or 'none'}")
    print(f"Algorithm 1: {' -> '.join(verdict.algorithm_1)}")
    if verdict.trade is not None:
        print(f"\nin ten folds, {verdict.trade.after} beside {verdict.trade.before} without: {verdict.trade.reason}")
    if not verdict.entered:
        return
    before, after = compare(served), compare([*served, *verdict.entered])
    for name, test in tests.items():
        ours, theirs = (_on(test, fit, one) for one in (after, before))
        said = Goal().compare(ours, theirs)[1]
        print(f"on {name}: {100 * ours.correct.mean():.2f} % in {ours.time_ms.mean():.2f} ms, {said}")


def _on(test: Recording, fit: Recording, found: Calibrated) -> Outcomes:
    """Return what a calibration's default gives on other images, with the times of the fit recording."""
    calibration, names = found.calibration, list(found.calibration.costs_ms)
    other = replace(of_models(test, names), costs_ms={name: fit.costs_ms[name] for name in names})
    policy = catalogue(other.models, calibration)[calibration.default_policy]
    run = replay_all(policy, other, range(len(other.classes)), calibration.temperatures, other.models[-1])
    return Judge(other, lambda _: 0.0).outcomes(run)


def with_candidates(family: Family, new: Mapping[str, Model]) -> Family:
    """Return the family with candidates as rungs."""
    return replace(family, models=(*family.models, *new.values()))


def tell(what: str, done: int, total: int) -> None:
    """Print how far a long step came, on one line."""
    print(f"\r{what} {done}/{total}   ", end="", flush=True)
