"""MODI's flowers (section 4): `python -m calibration.papers.modi.flowers FLOWERS MODELS`.

The paper retrains InceptionV3 on 3,684 flowers and judges what 8 bits cost on 381. Here `jetsel models train-head`
trains a head for every model of MODELS on one half of FLOWERS and the other half judges, then the other way round; 32
and 8 bits are compared image by image. FLOWERS: a folder with PART/CLASS/FILE, as the owners' set has it. Writes
results/modi-flowers.md.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.measures import mean_interval
from calibration.owners.__main__ import Owner
from calibration.owners.halves import Labelled, halves, listed
from calibration.papers.tables import table, written
from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.image import decode, model_input, read_file
from jetsel.zoo import scan
from jetsel.zoo.pretrained import INT8

FAMILY, BACKBONE = "flowers", "imagenet"
SEED = 2018
Right = dict[str, NDArray[np.bool_]]
"""By model, whether its answer to each image is right."""


def main() -> None:
    """Train both ways, judge, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m calibration.papers.modi.flowers", description=__doc__.splitlines()[0]
    )
    parser.add_argument("flowers", type=Path)
    parser.add_argument("models", type=Path, help=f"folder of the family {BACKBONE} in 32 and in 8 bits")
    parser.add_argument("--work", type=Path, default=Path("build/flowers"), help="folder to work in (%(default)s)")
    options = parser.parse_args()
    images = [image for part in sorted(options.flowers.iterdir()) for image in listed(part)]
    parts = halves(images, SEED)
    folder = options.work.resolve()
    turns = [
        turn(fit, test, folder / str(number), options.models) for number, (fit, test) in enumerate((parts, parts[::-1]))
    ]
    right = {name: np.concatenate([each[name] for each in turns]) for name in turns[0]}
    title = f"Flowers, {len(images):,} images of {len({label for _, label in images})} classes"
    columns = "model | 32 bits, top-1 % | 8 bits, top-1 % | 8 bits beside 32, points"
    under = f"Heads trained on {len(parts[0])} and {len(parts[1])} images, each judged on the others; seed {SEED}.\n"
    written("modi-flowers", "\n".join([table(title, columns, rows(right)), under]))


def turn(fit: Sequence[Labelled], test: Sequence[Labelled], folder: Path, models: Path) -> Right:
    """Train heads on some images as an owner does, and return which of the others each model answers rightly."""
    owner = Owner(FAMILY, folder)
    for path, label in fit:
        (folder / "images" / label).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / "images" / label / f"{path.parents[1].name}-{path.name}")
    owner.train(folder / "images", BACKBONE, models)
    family = scan([owner.models]).families[FAMILY]
    decoded = [decode(read_file(path, LIMITS), LIMITS, family.decode_px) for path, _ in test]
    classes = np.array([family.labels.names.index(label) for _, label in test])
    with loaded_models(family) as engines:
        return {
            model.manifest.name: np.array(
                [
                    engines[model.manifest.name].infer(model_input(one, model.manifest.input)).logits[0].argmax()
                    for one in decoded
                ]
            )
            == classes
            for model in family.models
        }


def rows(right: Right) -> list[str]:
    """Return a row for each model that is there with 8 bits too, the least accurate first."""
    plain = sorted((name for name in right if name + INT8 in right), key=lambda name: right[name].mean())
    found = []
    for name in plain:
        few = right[name + INT8]
        gain = 100 * (few.astype(float) - right[name])
        ends = mean_interval(gain)
        beside = f"{gain.mean():+.1f} ({ends.low:+.1f} to {ends.high:+.1f})"
        found.append(f"{name} | {_share(right[name])} | {_share(few)} | {beside}")
    return found


def _share(right: NDArray[np.bool_]) -> str:
    ends = share_interval(right)
    return f"{100 * right.mean():.1f} ({100 * ends.low:.1f} to {100 * ends.high:.1f})"


if __name__ == "__main__":
    main()
