"""Small copies of the images that the report shows, held by the page itself."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from msgspec import Struct

from jetsel import image
from jetsel.calibrate.findings import ImageFinding, ImageSample
from jetsel.calibrate.report.words import short
from jetsel.errors import BadImageError, ImageTooLargeError

SIDE_PX = 144  # of the longer side
QUALITY = 70  # of JPEG: 3 KB for most images, and 10 KB for noise
LONGEST_PATH = 80  # characters


class ShownImage(Struct, frozen=True):
    """One image of the page. jpeg: base64, or None, and then `missing` says why."""

    found: ImageFinding
    path: str
    jpeg: str | None
    missing: str

    @property
    def policies(self) -> dict[str, list[str]]:
        """The policies by their answer, the right one first."""
        answers = dict.fromkeys(sorted(self.found.answers.values(), key=lambda answer: answer != self.found.label))
        return {answer: [name for name, given in self.found.answers.items() if given == answer] for answer in answers}


def shown(sample: ImageSample, limits: image.Limits) -> list[ShownImage]:
    """Read the images of a sample."""
    folder = os.path.commonpath([str(Path(one.path).parent) for one in sample.images] or [""])
    return [
        ShownImage(one, short(os.path.relpath(one.path, folder), LONGEST_PATH), *_small(Path(one.path), limits))
        for one in sample.images
    ]


def _small(path: Path, limits: image.Limits) -> tuple[str | None, str]:
    """Return a small JPEG in base64, or None and why there is none."""
    try:
        if not path.is_file():
            return None, "This image is no longer on disk."
        bgr = image.decode(image.read_file(path, limits), limits, SIDE_PX).bgr
    except (OSError, ValueError, BadImageError, ImageTooLargeError):
        return None, "This image can no longer be read."
    shorter_px = SIDE_PX * min(bgr.shape[:2]) / max(bgr.shape[:2])
    return base64.b64encode(image.jpeg(bgr, shorter_px, QUALITY)).decode(), ""
