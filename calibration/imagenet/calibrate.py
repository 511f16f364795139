"""Calibrate the family of ImageNet as it ships: `python -m calibration.imagenet.calibrate FIT... --models DIR`.

FIT: folders with a folder for each kind of photographs, and in it one for each class; all of them together are fitted
on, each as it is and in three smaller sizes, beside 1,500 real small images of `--small`. DIR: where `jetsel models
pull efficientnet-lite --both --folder DIR` put the models. Writes the calibration to --out, of the models in 8 bits,
which are the faster ones on most machines; and the answers of all, by which it is fitted to another machine's models
and times. Numbers alone, nothing of a photograph is kept.

What ships is fitted on both labelled sets. The figure in README is of the first set alone, which `--out` keeps apart:
nothing may be judged on images that it was fitted on.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from calibration.starter.calibrate import compared, fitted, of_models, recorded, show
from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import save
from jetsel.base.files import write
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.features import WORKING_PX
from jetsel.zoo import scan
from jetsel.zoo.pretrained import INT8
from jetsel.zoo.store import PULLED

TIMED = TimingPlan(images=60)
"""Times that ship are replaced at the first start on a machine."""


SIZES = (160, 96, 64)
"""Shorter sides in pixels of the copies of each photograph: those that a detector's boxes and thumbnails have."""
SMALL_A_CLASS = 15
"""Real small images that are taken of each class: the first in the order of their names."""


def small_images(folder: Path, most: int) -> list[Path]:
    """Return the first images of each class of a folder with one folder for each class."""
    classes = sorted(one for one in folder.iterdir() if one.is_dir())
    return [path for one in classes for path in sorted(one.iterdir())[:most]]


def listed(file: Path, *folders: Path, small: Path | None = None, most: int = SMALL_A_CLASS) -> Path:
    """Write a CSV of every photograph of every kind in these folders, and its class; return the file.

    small: a folder of small images, which stand behind them; most: of each class.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    paths = sorted(path.resolve() for folder in folders for path in folder.glob("*/*/*") if path.is_file())
    paths += [] if small is None else [path.resolve() for path in small_images(small, most)]
    file.write_text("path,label\n" + "".join(f"{path},{path.parent.name}\n" for path in paths), encoding="utf-8")
    return file


def main() -> None:
    """Record, fit and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, nargs="+", metavar="FIT", help="to fit on: kind/class/photograph")
    parser.add_argument("--small", type=Path, help="real small images, class/image; without them photographs alone")
    parser.add_argument("--models", type=Path, required=True, help="the folder with the models")
    parser.add_argument("--out", type=Path, help="folder of the calibration (default: the one that ships)")
    parser.add_argument("--work", type=Path, default=Path("build/imagenet"), help="recordings (%(default)s)")
    parser.add_argument("--features-px", type=int, default=WORKING_PX, help="what features see at most (%(default)s)")
    options = parser.parse_args()
    family = scan([options.models]).families["imagenet"]
    out = options.out or PULLED / "calibration"
    small, sizes = ((), ()) if options.small is None else ((options.small,), SIZES)
    name = "+".join(folder.name for folder in (*options.photos, *small))
    photos = listed(options.work / f"{name}.csv", *options.photos, small=options.small)
    file = options.work / f"{name}-{options.features_px}.sqlite"
    loaded = recorded(family, photos, file, options.features_px, TIMED, sizes)
    recording = of_models(loaded.recording, [name for name in loaded.recording.models if name.endswith(INT8)])
    found = fitted(family, dataclasses.replace(loaded, recording=recording))
    save(found.calibration, out)
    others = {name: one for name, one in loaded.identity.identities.items() if name not in recording.models}
    write(out / ANSWERS, loaded.recording.condense_answers(fit_temperatures(loaded.recording), others))
    show(f"each of {found.calibration.images.count} photographs held out, in one of ten folds", compared(found))
    print(f"\n{found.findings.verdict}\nnoisy: {found.findings.noisy}\nwritten to {out}")


if __name__ == "__main__":
    main()
