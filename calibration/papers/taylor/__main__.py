"""Taylor et al. (LCTES 2018) beside what is measured: `python -m calibration.papers.taylor`.

Parts: readers, the strongest reader of features and what was dropped; figures, Tables 1 and 2, Figures 1, 5, 6a and 8
and the paper's other claims; paying, where a premodel could pay and what could be seen; fitting, Table 3, Figures 6, 7,
12 and 13; links, the chain by its first link, top-5 and training; alternatives, Figures 9 to 11; resolution; derived,
the starter family with the times and the energy of a TX2; identities, sums of the paper's own figures.
Everything is fitted on the images of FIT. Recordings are kept in --work, so that the same command goes on. Needs
pip install 'jetsel[export,dev]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from calibration.imagenet.calibrate import listed
from calibration.papers.tables import written
from calibration.papers.taylor.alternatives import alternatives
from calibration.papers.taylor.chain import fitting
from calibration.papers.taylor.figures import derived, figures
from calibration.papers.taylor.identities import identities
from calibration.papers.taylor.links import links
from calibration.papers.taylor.paying import paying
from calibration.papers.taylor.readers import strengths
from calibration.papers.taylor.resolution import resolution
from calibration.papers.taylor.study import Study, read
from jetsel.zoo import STARTER, scan

IDENTITIES = "identities"
PARTS = ("readers", "figures", "fitting", "links", "alternatives", "resolution", "paying", "derived", IDENTITIES)


def main() -> None:
    """Print every part of every family that is named, or one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--work", type=Path, default=Path("build/taylor"), help="recordings (%(default)s)")
    parser.add_argument("--starter", type=Path, nargs=2, metavar=("FIT", "TEST"), help="class/image")
    parser.add_argument("--imagenet", type=Path, nargs=3, metavar=("SIX", "FIT", "TEST"), help="kind/class/image")
    parser.add_argument("--photos", type=Path, help="class/image of the starter family at full size, for resolution")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    network = None if options.imagenet is None else scan([options.imagenet[0]]).families["imagenet"]
    for study in _studies(options):
        made: dict[str, Callable[[], Iterator[str]]] = {
            "readers": partial(strengths, study),
            "figures": partial(figures, study),
            "paying": partial(paying, study),
            "fitting": partial(fitting, study),
            "links": partial(links, study),
            "alternatives": partial(alternatives, study, network),
            "resolution": partial(
                resolution, study, options.work, options.photos if study.family.name == "starter" else None
            ),
        }
        if study.family.name == "starter":
            made["derived"] = partial(derived, study)
        for part in made:
            if options.part in (None, part):
                written(f"taylor-{part}-{study.family.name}", "\n".join(made[part]()))
    if options.part in (None, IDENTITIES):
        written(f"taylor-{IDENTITIES}", "\n".join(identities()))


def _studies(options: argparse.Namespace) -> Iterator[Study]:
    if options.starter is not None:
        yield read("starter", STARTER, *options.starter, options.work)
    if options.imagenet is not None:
        models, *folders = options.imagenet
        lists = [listed(options.work / f"{folder.name}.csv", folder) for folder in folders]
        yield read("imagenet", models, *lists, options.work)


if __name__ == "__main__":
    main()
