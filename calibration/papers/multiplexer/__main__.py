"""Eshratifar and Pedram (2020) beside what is measured: `python -m calibration.papers.multiplexer`.

Parts: identities, the paper's own sums; starter and imagenet, the multiplexer of `jetsel calibrate --with multiplexer`.
Everything is fitted on the images of FIT and judged on those of TEST. Recordings are kept in --work, so that the same
command goes on. Needs pip install 'jetsel[export,dev]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from calibration.imagenet.calibrate import listed
from calibration.optimizing.beside import recorded
from calibration.optimizing.making import facts_of
from calibration.papers.multiplexer.edge import NAME as EDGE
from calibration.papers.multiplexer.edge import taught
from calibration.papers.multiplexer.identities import identities
from calibration.papers.multiplexer.local import PAPER, REFITS, figure_1, local, refits, replayed, tables_i_and_ii
from calibration.papers.multiplexer.policies import BESIDE, as_in_the_paper, at_equal_time, break_even
from calibration.papers.multiplexer.readers import areas, gains
from calibration.papers.tables import table, written
from calibration.papers.taylor.clock import Clock
from calibration.starter.calibrate import of_the_day
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.policies.multiplexer import NAME
from jetsel.policies.registry import KIND
from jetsel.zoo import STARTER, scan

TIMED = TimingPlan(images=1)  # times are the clock's


def judged(name: str, models: Path, fit_images: Path, test_images: Path, work: Path) -> str:
    """Fit the multiplexer and the cascade, and judge: all tables of one family. Times are processor times."""
    family = of_the_day(scan([models]).families[name])
    fit, test = (
        recorded(family, images, work / f"{name}-{what}.sqlite", TIMED)
        for what, images in (("fit", fit_images), ("test", test_images))
    )
    costs_ms = Clock(family, fit, work / f"{name}-times.json").models_ms()
    fit, test = (replace(one, costs_ms=costs_ms) for one in (fit, test))
    learned = taught(fit, [KIND[one] for one in (NAME, BESIDE)])
    operations = {model.manifest.name: facts_of(model).operations or 0 for model in family.models}
    counted = f"{name}, fitted on {len(fit.classes)} images, {len(test.classes)} others"
    tables = (
        (f"where {test.models[0]} is right", "reader | AUC | the multiplexer has more", areas(learned, test)),
        (
            f"which images a larger model gains over {test.models[0]}",
            f"model | gains | AUC, multiplexer | by doubt | AUC, multiplexer: {test.models[-1]} gains over it",
            gains(learned, test),
        ),
        (
            f"what stays at the accuracy of {test.models[-1]} at the edge (paper: {PAPER:g} %)",
            "here | threshold on | stays | top-1 % | beside the edge, points",
            local(learned, test),
        ),
        (
            f"what stays, by {REFITS} refits of the threshold on half of the {len(fit.classes)} images",
            "here | threshold on | stays: mean (5 to 95 %) | beside the edge, points | loses more than 0.5 points",
            refits(learned),
        ),
        (
            f"what stays if any model here may answer: the policy {EDGE}, replayed",
            "here | stays | top-1 % | beside the edge, points",
            replayed(learned, test),
        ),
        (
            "policies at equal time",
            "part of the time | policy | top-1 % | ms | beside the cascade, points | beside a mix of two, points",
            at_equal_time(learned, test),
        ),
        ("the paper's settings", "rule | top-1 % | ms", as_in_the_paper(learned, test)),
        (
            "break-even",
            "part of the time | cascade | first ms | goes on | limit ms | the multiplexer adds ms | could pay",
            break_even(learned),
        ),
        (
            f"Tables I and II with {name}'s models",
            f"rule | stays | G multiply-accumulates | of {test.models[-1]}'s | ms | of {test.models[-1]}'s",
            tables_i_and_ii(learned, test, operations),
        ),
        ("Figure 1, %", f"right, and not | {' | '.join(test.models)}", figure_1(test)),
    )
    return "\n".join(table(f"{counted}: {title}", columns, rows) for title, columns, rows in tables)


def main() -> None:
    """Print every part, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("identities", "starter", "imagenet"))
    parser.add_argument("--work", type=Path, default=Path("build/multiplexer"), help="recordings (%(default)s)")
    parser.add_argument("--starter", type=Path, nargs=2, metavar=("FIT", "TEST"), help="class/image")
    parser.add_argument("--imagenet", type=Path, nargs=3, metavar=("SIX", "FIT", "TEST"), help="kind/class/image")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for name, part in _parts(options).items():
        if options.part in (None, name):
            written(f"multiplexer-{name}", part())


def _parts(options: argparse.Namespace) -> dict[str, Callable[[], str]]:
    work, parts = options.work, {"identities": identities}
    if options.starter is not None:
        parts["starter"] = partial(judged, "starter", STARTER, *options.starter, work)
    if options.imagenet is not None:
        models, *folders = options.imagenet
        lists = [listed(work / f"{folder.name}.csv", folder) for folder in folders]
        parts["imagenet"] = partial(judged, "imagenet", models, *lists, work)
    return parts


if __name__ == "__main__":
    main()
