"""Calibrate the family of ImageNet as it ships: `python -m calibration.imagenet.calibrate FIT --models DIR`.

FIT: a folder with a folder for each kind of photographs, and in it one for each class. DIR: where `jetsel models pull
efficientnet-lite --both --folder DIR` put the models. Writes jetsel/zoo/imagenet/calibration, fitted on FIT alone, of
the models in 8 bits, which are the faster ones on most machines; and the answers of all, by which it is fitted to
another machine's models and times. Numbers alone, nothing of a photograph is kept.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from calibration.starter.calibrate import compared, fitted, recorded, show
from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import save
from jetsel.base.files import write
from jetsel.calibrate.fit.assemble import fit_temperatures
from jetsel.calibrate.record import TimingPlan
from jetsel.features import WORKING_PX
from jetsel.zoo import scan
from jetsel.zoo.pretrained import INT8

TIMED = TimingPlan(images=60)
"""Times that ship are replaced at the first start on a machine."""


def listed(photos: Path, file: Path) -> Path:
    """Write a CSV of every photograph of every kind, and its class; return the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    paths = sorted(path.resolve() for path in photos.glob("*/*/*") if path.is_file())
    file.write_text("path,label\n" + "".join(f"{path},{path.parent.name}\n" for path in paths), encoding="utf-8")
    return file


def main() -> None:
    """Record, fit and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="to fit on: kind/class/photograph")
    parser.add_argument("--models", type=Path, required=True, help="the folder with the models")
    parser.add_argument("--work", type=Path, default=Path("build/imagenet"), help="recordings (%(default)s)")
    parser.add_argument("--features-px", type=int, default=WORKING_PX, help="what features see at most (%(default)s)")
    options = parser.parse_args()
    family = scan([options.models]).families["imagenet"]
    photos = listed(options.photos, options.work / "fit.csv")
    loaded = recorded(family, photos, options.work / f"fit-{options.features_px}.sqlite", options.features_px, TIMED)
    recording = loaded.recording.of_models([name for name in loaded.recording.models if name.endswith(INT8)])
    identities = {name: loaded.identities[name] for name in recording.models}
    found = fitted(family, dataclasses.replace(loaded, recording=recording, identities=identities))
    save(found.calibration, family.calibration)
    others = {name: identity for name, identity in loaded.identities.items() if name not in identities}
    answers = loaded.recording.condensed(fit_temperatures(loaded.recording), others)
    write(family.calibration / ANSWERS, answers)
    show(f"in ten folds over {found.findings.photographs} photographs", compared(found))
    print(f"\n{found.findings.verdict}\nnoisy: {found.findings.noisy}")


if __name__ == "__main__":
    main()
