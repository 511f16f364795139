"""Whether the starter family keeps its promises: `python -m calibration.starter.promises CALIBRATE TEST`.

CALIBRATE and TEST: folders with a folder for each class, on which no model was trained. Both are put together, and
calibration images are drawn from the whole. Prints Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.promises import pooled, show
from calibration.starter.calibrate import recorded
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.features import WORKING_PX
from jetsel.zoo import STARTER, scan

TIMED = TimingPlan(images=60)


def main() -> None:
    """Record what is not recorded yet, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calibrate", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/starter"), help="recordings (%(default)s)")
    parser.add_argument("--splits", type=int, default=500, help="draws of calibration images (%(default)s)")
    parser.add_argument("--images", type=int, default=2000, help="images of a draw (%(default)s)")
    parser.add_argument("--most-s", type=float, default=7200, help="seconds after which no draw begins (%(default)s)")
    options = parser.parse_args()
    family = scan([STARTER]).families["starter"]
    sets = [
        recorded(family, folder, options.work / f"{folder.name}-promises.sqlite", WORKING_PX, TIMED)
        for folder in (options.calibrate, options.test)
    ]
    whole = pooled(*(one.recording for one in sets))
    show("The starter family", whole, sets[0].identity, options.images, options.splits, options.most_s)


if __name__ == "__main__":
    main()
