"""MODI beside what we find: `python -m calibration.papers.modi --starter PHOTOS TEST --imagenet SIX FIT TEST`.

PHOTOS, FIT and TEST: photographs, each in a folder named by its class; 8-bit ranges are found on the first two, TEST
judges. SIX: the folder that `jetsel models pull efficientnet-lite` writes; its models in 32 bits count, as 8 bits are
made here. Each part writes its tables to results/modi-PART.md; files that are made are kept in --work, which has to be
on a disk. The edge needs root, and pip install 'jetsel[gateway]'.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path

from benchmarks.conditions import conditions
from calibration.papers.modi.edge import beside_devices, figure_4, through_links
from calibration.papers.modi.files import RAW, ROUNDED, files, photographs
from calibration.papers.modi.loading import CONDITIONS, figure_3, measured
from calibration.papers.modi.networks import PROFILES
from calibration.papers.modi.storage import budgets, unpacking
from calibration.papers.tables import written
from jetsel.zoo import STARTER, Family, scan
from jetsel.zoo.pretrained import INT8

PARTS = ("storage", "loading", "edge")
MADE = (INT8, "-night")
BEST = "lite2-260"  # at the edge: the most accurate on the fit photographs
KINDS = ("full", "random227")  # of the test photographs: large and small
MOST_SENT = 81
SEED = 2018


def main() -> None:
    """Print every part, or the one that is named."""
    parser = argparse.ArgumentParser(prog="python -m calibration.papers.modi", description=__doc__.splitlines()[0])
    parser.add_argument("--starter", type=Path, nargs=2, required=True, metavar=("PHOTOS", "TEST"))
    parser.add_argument("--imagenet", type=Path, nargs=3, required=True, metavar=("SIX", "FIT", "TEST"))
    parser.add_argument("--part", choices=PARTS, help="left out: all")
    parser.add_argument("--rounds", type=int, default=9, help="first requests of each file and kind (%(default)s)")
    parser.add_argument("--work", type=Path, default=Path("build/modi"), help="what is made (%(default)s)")
    options = parser.parse_args()
    six, fit, test = options.imagenet
    under = "\n".join(conditions()) + "\n"
    starter = files(plain(scan([STARTER]).families["starter"]), *options.starter, options.work)
    imagenet = files(plain(scan([six]).families["imagenet"]), fit, test, options.work)
    full, small = (shuffled(test / kind) for kind in KINDS)
    if options.part in (None, "storage"):
        written("modi-storage", "\n".join([budgets([starter, imagenet]), unpacking([*starter, *imagenet]), under]))
    if options.part in (None, "loading"):
        run = [file for file in (*starter, *imagenet) if file.way != ROUNDED]  # rounded, it runs as it ships
        written("modi-loading", "\n".join([*figure_3(measured(run, full, CONDITIONS, options.rounds)), under]))
    if options.part in (None, "edge"):
        here = [file for file in imagenet if file.way != ROUNDED]
        (same,) = (file for file in here if (file.model, file.way) == (BEST, RAW))
        found = through_links(six, BEST, full, here)
        less = figure_4(through_links(six, BEST, small, [same]), same)
        sources = "\n".join(f"- {name}: {source}" for name, (_, source) in PROFILES.items())
        written("modi-edge", "\n".join([figure_4(found, same), beside_devices(found, here), less, sources, under]))


def plain(family: Family) -> Family:
    """Return a family without what was made of its models: of 8 bits, or for the night."""
    return replace(family, models=tuple(one for one in family.models if not one.manifest.name.endswith(MADE)))


def shuffled(folder: Path) -> list[Path]:
    """Return some photographs of a folder, drawn once."""
    found = photographs(folder)
    random.Random(SEED).shuffle(found)
    return found[:MOST_SENT]


if __name__ == "__main__":
    main()
