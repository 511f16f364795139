"""Heads for another light: `python examples/day_and_night.py`, in a minute, without torch.

A family of heads that learned images of the day gains heads for the night, on the same backbones. Until
`jetsel calibrate` has run on both kinds, the daemon answers by the calibration that knows the first heads; afterwards
the policy that it found chooses among all of them. Images of the day are pieces of the demo's; those of the night are
the same made dark, grey and noisy: drawn, since no camera was at hand. All that is made is removed at the end.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
from two_tasks import halves, jetsel, pieces

from jetsel import Client
from jetsel.cli.status_text import family_lines
from jetsel.cli.temporary import daemon

OWN = "yard"


def main() -> None:
    """Train heads for the day and serve them; then add heads for the night, calibrate, and see which models answer."""
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        work = Path(name)
        os.environ["STATE_DIRECTORY"] = str(work / "state")  # where the commands and the daemon keep all
        day = pieces(work / "day")
        train, other = halves(day, work / "by-day")
        night_train, night_other = halves(darkened(day, work / "night"), work / "by-night")
        kinds = {"day": other, "night": night_other}
        jetsel("models", "train-head", train, "--backbone", "starter", "--family", OWN)
        jetsel("calibrate", other, "--family", OWN)
        with daemon(calibrations=work / "state" / "calibrations") as client:
            jetsel("models", "train-head", night_train, "--family", OWN, "--name", "dark")
            tell_of_family(client, kinds)
            jetsel("calibrate", together(kinds, work / "both"), "--family", OWN)
            tell_of_family(client, kinds)


def tell_of_family(client: Client, kinds: dict[str, Path]) -> None:
    """Reload, and print what is listed as not calibrated, what decides now, and which models answer about each kind."""
    client.reload()
    listed = [line for line in jetsel("models", "list").splitlines() if line.startswith("not calibrated")]
    (family,) = (one for one in client.status().families if one.name == OWN)
    print("\n".join([*listed, *family_lines(family)]))
    for kind, folder in kinds.items():
        ran = Counter(client.classify(path, family=OWN).ran[-1].model for path in sorted(folder.glob("*/*")))
        print(f"by {kind} answer: {', '.join(f'{model} ({times})' for model, times in ran.most_common())}", flush=True)


def darkened(day: Path, folder: Path) -> Path:
    """Draw images of the night: those of the day with less light, without colour, with the noise of a sensor."""
    noise = np.random.default_rng(1)
    for file in sorted(day.glob("*/*.png")):
        light = (cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) / 255) ** 2 / 4
        (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
        dark = np.clip(255 * light + noise.normal(0, 6, light.shape), 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / file.parent.name / file.name), dark)
    return folder


def together(kinds: dict[str, Path], folder: Path) -> Path:
    """Return one folder that holds the images of all kinds by their classes."""
    for kind, images in kinds.items():
        for file in images.glob("*/*"):
            (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
            (folder / file.parent.name / f"{kind}-{file.name}").symlink_to(file.resolve())
    return folder


if __name__ == "__main__":
    main()
