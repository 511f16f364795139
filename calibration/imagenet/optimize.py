"""Cheaper rungs for ImageNet's family: `python -m calibration.imagenet.optimize FIT TEST --models DIR`.

FIT, TEST and DIR as in calibration.imagenet.reproduce. INT8 and smaller inputs of lite0, lite1 and lite2 are made by
calibration.optimizing; 8-bit ranges are found on a third of FIT, which nothing else uses. The candidates
are chosen on folds of the rest of FIT and reported on TEST, kinds apart, with paired intervals. Interrupted, the same
command goes on. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibration.imagenet.calibrate import listed
from calibration.imagenet.reproduce import MAIN
from calibration.optimizing.beside import beside_parents, chosen, comparing, made, recorded, with_candidates
from calibration.optimizing.material import OptimizePlan, drawn
from calibration.optimizing.recipes import recipes
from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.zoo import Family, Model, scan

PARENTS = ("lite0-224", "lite1-240", "lite2-260")
SMALLEST_PX = 128  # below, lite0 has rungs already, and the others are right on less
LEARNED_FROM = 1 / 3
TIMED = TimingPlan(images=60)


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
        found |= made(asked, OptimizePlan(parent, family, learn, LIMITS, work / parent.manifest.name))
    return {name: model for name, model in found.items() if model.manifest.identity not in served}


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
    whole = with_candidates(family, new)
    rest = options.work / "fit.csv"
    rest.write_text("path,label\n" + "".join(f"{path},{path.parent.name}\n" for path in held), encoding="utf-8")
    fit = recorded(whole, rest, options.work / "fit.sqlite", TIMED)
    test = recorded(whole, listed(options.work / "test.csv", options.test), options.work / "test.sqlite", TIMED)
    kinds = np.array([Path(path).parts[-3] for path in test.paths])
    models = {model.manifest.name: model for model in whole.models}
    for kind in sorted(set(kinds), key=lambda kind: kind != MAIN):
        beside_parents(kind, test.take(np.flatnonzero(kinds == kind)), models, fit)
    served = [model.manifest.name for model in family.models]
    eight = [name for name in new if name.endswith("-int8")]
    tests = {
        f"{MAIN} of the test photographs": test.take(np.flatnonzero(kinds == MAIN)),
        "all kinds of the test photographs": test,
    }
    for title, group in (
        ("8-bit numbers alone", [name for name in eight if "px" not in name]),
        ("smaller inputs alone", [name for name in new if name not in eight]),
        ("both, and both at once", list(new)),
    ):
        chosen(title, group, served, served[-1], fit, tests, comparing(whole, options.work / "fit.sqlite"))


if __name__ == "__main__":
    main()
