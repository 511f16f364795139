"""Whether ImageNet's family keeps its promises: `python -m calibration.imagenet.promises`.

Calibration images are drawn from the answers that ship with the family, and judged on the others of them: neither
images nor models are needed. Of each answer its likeliest classes are known. Prints Markdown.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import jetsel.zoo
from calibration.promises import show
from jetsel.artefact.calibration import Calibration
from jetsel.artefact.coding import read
from jetsel.artefact.condensed import read_condensed
from jetsel.calibrate.record.recording import Recording

SHIPPED = Path(jetsel.zoo.__file__).parent / "imagenet" / "calibration"


def shipped() -> tuple[Recording, Calibration]:
    """Return the answers of the models that the shipped calibration has, and that calibration."""
    known = read(SHIPPED)
    scaled = Recording.of_answers(read_condensed(SHIPPED, known.costs_ms), known.decode_px)
    return replace(without_small_images(scaled), is_scaled=False), known  # temperatures are fitted again


def without_small_images(recording: Recording) -> Recording:
    """Return the photographs of a recording at their own size: small images and copies are left out."""
    assert recording.sizes is not None
    return recording.take(np.flatnonzero(recording.sizes == recording.sizes.max()))


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=500, help="draws of calibration images (%(default)s)")
    parser.add_argument("--images", type=int, default=600, help="images of a draw (%(default)s)")
    parser.add_argument("--most-s", type=float, default=7200, help="seconds after which no draw begins (%(default)s)")
    options = parser.parse_args()
    recording, identity = shipped()
    show("ImageNet's family", recording, identity, options.images, options.splits, options.most_s)


if __name__ == "__main__":
    main()
