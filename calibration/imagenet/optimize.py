"""Cheaper rungs for ImageNet's family: `python -m calibration.imagenet.optimize FIT TEST --models DIR`.

FIT, TEST and DIR as in calibration.imagenet.reproduce. INT8 and smaller inputs of lite0, lite1 and lite2 are made by
what `jetsel models optimize` does; 8-bit ranges are found on a third of FIT, which nothing else uses. The candidates
are chosen on folds of the rest of FIT and reported on TEST, kinds apart, with paired intervals. Interrupted, the same
command goes on. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.imagenet.calibrate import listed
from calibration.imagenet.reproduce import MAIN
from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.candidates import judged
from jetsel.calibrate.gains import Gain, gains_on
from jetsel.calibrate.metrics import mean_interval
from jetsel.calibrate.record import Options, Plan, find, load, loaded_models, record
from jetsel.calibrate.recording import Recording
from jetsel.train.optimize import making
from jetsel.train.optimize.facts import facts_of
from jetsel.train.optimize.material import Material
from jetsel.train.optimize.material import Plan as Wanted
from jetsel.train.optimize.photographs import drawn
from jetsel.train.optimize.recipes import recipes
from jetsel.zoo import Family, Model, scan

PARENTS = ("lite0-224", "lite1-240", "lite2-260")
SMALLEST_PX = 128  # below, lite0 has rungs already, and the others are right on less
LEARNED_FROM = 1 / 3
MAX_DROP = 30.0
TIMED = Plan(photographs=60)


def candidates(family: Family, learn: Sequence[Path], work: Path) -> dict[str, Model]:
    """Make what is not there yet, less what the family has."""
    found = {}
    served = {model.manifest.identity for model in family.models}
    for parent in (model for model in family.models if model.manifest.name in PARENTS):
        asked = [
            recipe
            for recipe in recipes(("int8", "smaller"), parent.manifest.input)
            if recipe.side_px is None or recipe.side_px >= SMALLEST_PX
        ]
        plan = Wanted(parent, family, learn, LIMITS, work / parent.manifest.name)
        made = making.make(asked, Material(plan, lambda what, n, of: print(f"\r{what} {n}/{of}   ", end="")))
        for name, reason in made.failed.items():
            print(f"\n{name} was not made: {reason}")
        found |= made.models
    return {name: model for name, model in found.items() if model.manifest.identity not in served}


def recorded(family: Family, photos: Path, file: Path) -> Recording:
    """Record what is not recorded yet, and read it back."""
    with loaded_models(family) as engines:
        found = find(photos, family.labels, None, need_labels=True)
        options = Options(limits=LIMITS, plan=TIMED)
        record(file, family, engines, found, options, lambda what, n, of: print(f"\r{what} {n}/{of}   ", end=""))
    print()
    return load(file, family).recording


def shown(test: Recording, kind: str, models: dict[str, Model], parent_of: dict[str, str], fit: Recording) -> None:
    """Print each model on one kind of the test photographs, beside the rung that it comes from."""
    right, answers = test.right("top1").astype(float), test.logits.argmax(axis=2)
    print(f"\n{kind}: {len(test.classes)} photographs; ms as timed with the fit photographs, one thread\n")
    print("| model | top-1 % | beside its parent, points | agrees % | ms | MB | MB gzipped | million operations |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in sorted(test.models, key=lambda name: fit.costs_ms[name]):
        place, fact = test.models.index(name), facts_of(models[name])
        beside = agrees = ""
        if name in parent_of:
            theirs = test.models.index(parent_of[name])
            gain = 100 * (right[:, place] - right[:, theirs])
            interval = mean_interval(gain)
            beside = f"{gain.mean():+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"
            agrees = f"{100 * (answers[place] == answers[theirs]).mean():.1f}"
        sizes = f"{fact.bytes / 1e6:.2f} | {fact.gzipped_bytes / 1e6:.2f} | {(fact.operations or 0) / 1e6:.0f}"
        share = f"{100 * right[:, place].mean():.2f}"
        print(f"| {name} | {share} | {beside} | {agrees} | {fit.costs_ms[name]:.2f} | {sizes} |")


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


def main() -> None:
    """Make, record and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--models", type=Path, required=True, help="the folder with the six rungs")
    parser.add_argument(
        "--work", type=Path, default=Path("build/optimize"), help="candidates, recordings (%(default)s)"
    )
    options = parser.parse_args()
    family = scan([options.models]).families["imagenet"]
    every = sorted(path.resolve() for path in options.fit.glob("*/*/*") if path.is_file())
    learn, held = drawn(every, LEARNED_FROM)
    new = candidates(family, learn, options.work)
    whole = replace(family, models=(*family.models, *new.values()))
    options.work.mkdir(parents=True, exist_ok=True)
    rest = options.work / "fit.csv"
    rest.write_text("path,label\n" + "".join(f"{path},{path.parent.name}\n" for path in held), encoding="utf-8")
    fit = recorded(whole, rest, options.work / "fit.sqlite")
    test = recorded(whole, listed(options.test, options.work / "test.csv"), options.work / "test.sqlite")
    kinds = np.array([Path(path).parts[-3] for path in test.paths])
    models = {model.manifest.name: model for model in whole.models}
    parent_of = {name: model.manifest.derived_from.name for name, model in new.items() if model.manifest.derived_from}
    for kind in sorted(set(kinds), key=lambda kind: kind != MAIN):
        shown(test.take(np.flatnonzero(kinds == kind)), kind, models, parent_of, fit)
    served = [model.manifest.name for model in family.models]
    eight = [name for name in new if name.endswith("-int8")]
    for title, group in (
        ("8-bit numbers alone", [name for name in eight if "px" not in name]),
        ("smaller inputs alone", [name for name in new if name not in eight]),
        ("both, and both at once", list(new)),
    ):
        verdict = judged(fit.of_models([*served, *group]), served[-1], served, MAX_DROP, 0.5, {})
        print(
            f"\n## {title}\n\non folds of the fit photographs these are wanted: {', '.join(verdict.entered) or 'none'}"
        )
        print(f"Algorithm 1: {' -> '.join(verdict.algorithm_1)}")
        compared("in ten folds of the fit photographs", verdict.gains)
        for kind in (MAIN, "all kinds"):
            rows = np.flatnonzero((kinds == kind) | (kind == "all kinds"))
            compared(
                f"fitted there, on {kind} of the test photographs",
                gains_on(test.take(rows), fit, served, verdict.entered),
            )


if __name__ == "__main__":
    main()
