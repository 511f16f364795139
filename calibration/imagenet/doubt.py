"""Whether ImageNet's family keeps its promises: `python -m calibration.imagenet.doubt FIT TEST --models DIR`.

FIT, TEST and DIR as in calibration.imagenet.reproduce. Both sets are put together, and calibration images are drawn
from the whole, so that images drawn and images judged are of the same kinds. Of each answer its likeliest classes are
kept, as in what ships with a calibration. Prints Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.doubt import of_shipped, pooled, show, shrunk
from calibration.imagenet.calibrate import TIMED, listed
from calibration.starter.calibrate import recorded
from jetsel.calibrate.fit.assemble import Identity
from jetsel.calibrate.retiming import offered
from jetsel.features import WORKING_PX, table_hash
from jetsel.zoo import scan

KIND = "cascade"


def main() -> None:
    """Record what is not recorded yet, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--models", type=Path, required=True, help="the folder with the models")
    parser.add_argument("--work", type=Path, default=Path("build/imagenet"), help="recordings (%(default)s)")
    parser.add_argument("--splits", type=int, default=500, help="draws of calibration images (%(default)s)")
    parser.add_argument("--images", type=int, default=600, help="images of a draw (%(default)s)")
    parser.add_argument("--most-s", type=float, default=7200, help="seconds after which no draw begins (%(default)s)")
    options = parser.parse_args()
    family = scan([options.models]).families["imagenet"]
    sets = []
    for folder in (options.fit, options.test):
        photos = listed(folder, options.work / f"{folder.name}.csv")
        sets.append(recorded(family, photos, options.work / f"{folder.name}-doubt.sqlite", WORKING_PX, TIMED))
    recording, _ = offered(sets[0].recording, {model.manifest.name: model for model in family.models})
    recording = of_shipped(recording, family.calibration, KIND)
    whole = shrunk(pooled(recording, sets[1].recording.of_models(recording.models)))
    identities = {name: sets[0].identities[name] for name in recording.models}
    identity = Identity(family.name, family.labels.sha256, identities, table_hash(), family.decode_px, WORKING_PX)
    show("ImageNet's family", whole, KIND, identity, options.images, options.splits, options.most_s)


if __name__ == "__main__":
    main()
