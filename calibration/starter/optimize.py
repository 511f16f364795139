"""Cheaper rungs made of `l`: `python -m calibration.starter.optimize LEARN PHOTOS TEST`, each a folder for each class.

`l` pruned by its activations and factorised into one-dimensional convolutions, to two sizes each, by
calibration.optimizing; each is fine-tuned on LEARN for at most 20 minutes. They are chosen on folds of PHOTOS and
reported on TEST, with paired intervals. Interrupted, the same command goes on. Prints Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from calibration.optimizing.beside import beside_parents, chosen, comparing, made, recorded, with_candidates
from calibration.optimizing.material import OptimizePlan
from calibration.optimizing.recipes import recipes
from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.zoo import STARTER, scan

PARENT = "l"
FACTORISING, PRUNING = "one-d", "plain"  # every convolution of `l` but its shortcuts' is 3 x 3
EPOCHS, MOST_S = 8, 1200.0  # what 20 minutes of one thread allow


def main() -> None:
    """Make, record and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learn", type=Path, help="to fine-tune on; its labels are not read")
    parser.add_argument("photos", type=Path, help="to choose on")
    parser.add_argument("test", type=Path, help="to report on")
    parser.add_argument(
        "--work", type=Path, default=Path("build/starter-optimize"), help="candidates, recordings (%(default)s)"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)  # the same weights each time
    family = scan([STARTER]).families["starter"]
    parent = next(model for model in family.models if model.manifest.name == PARENT)
    learn = sorted(path.resolve() for path in options.learn.glob("*/*") if path.is_file())
    plan = OptimizePlan(parent, family, learn, LIMITS, options.work / PARENT, epochs=EPOCHS, most_s=MOST_S)
    new = made(recipes((FACTORISING, PRUNING), parent.manifest.input), plan)
    whole = with_candidates(family, new)
    fit = recorded(whole, options.photos, options.work / "fit.sqlite", TimingPlan())
    test = recorded(whole, options.test, options.work / "test.sqlite", TimingPlan())
    beside_parents("test photographs", test, {model.manifest.name: model for model in whole.models}, fit)
    served = [model.manifest.name for model in family.models]
    factorised = [name for name in new if FACTORISING in name]
    for title, group in (
        ("factorised alone", factorised),
        ("pruned alone", [name for name in new if name not in factorised]),
        ("both", list(new)),
    ):
        compare = comparing(whole, options.work / "fit.sqlite")
        chosen(title, group, served, PARENT, fit, {"the test images": test}, compare)


if __name__ == "__main__":
    main()
