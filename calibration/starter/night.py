"""Images as a camera gives them at night, drawn from images of the day: no infrared camera was at hand.

In the dark, a day and night camera takes its infrared filter away: its image has no colour, little light, and the noise
of a sensor that amplifies. `python -m calibration.starter.night FOLDER OUT` copies a folder of images and darkens some
of them, for a calibration on day and night together.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

GAMMA = (1.0, 1.8)
"""Contrast of the dark: light x image^gamma, as Lv, Li and Lu darken images (IJCV 2021, section 3.1), though less."""
LIGHT = (0.3, 0.8)
"""Share of the day's brightness that is left (the same section)."""
SHOT = (0.0, 0.6)
"""Variance of the noise for each grey level of light: photons that are counted (Foi et al., IEEE TIP 2008)."""
READ = (1.0, 6.0)
"""Deviation of the noise that does not depend on light, in grey levels (the same paper)."""
BLUR_PX = (0.0, 0.7)
"""Deviation of a Gaussian blur for 64 pixels: infrared light has another focus than the light that a lens is made for
(a corruption of Hendrycks and Dietterich, ICLR 2019, at their mildest)."""
QUALITY = (50, 95)
"""Of the camera's JPEG; the same paper goes from 80 down to 7 for ImageNet's images."""


def darkened(bgr: NDArray[np.uint8], draw: np.random.Generator) -> NDArray[np.uint8]:
    """Return an image of the night, drawn: blurred, grey, dark, noisy, and through JPEG. bgr: (height, width, 3)."""
    gray = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
    blur = draw.uniform(*BLUR_PX) * max(1.0, min(gray.shape) / 64)
    if blur > 0.2:  # less than that moves no grey level
        gray = cv2.GaussianBlur(gray, (0, 0), blur)
    light = 255 * draw.uniform(*LIGHT) * (gray.astype(np.float32) / 255) ** draw.uniform(*GAMMA)
    deviation = np.sqrt(draw.uniform(*SHOT) * light + draw.uniform(*READ) ** 2)
    noisy = light + deviation * draw.standard_normal(light.shape, np.float32)
    dark = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    _, encoded = cv2.imencode(".jpg", dark, [cv2.IMWRITE_JPEG_QUALITY, int(draw.integers(*QUALITY, endpoint=True))])
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR), np.uint8)


@dataclass(frozen=True)
class NightShare:
    """Which images of a folder are darkened, by their content and a seed: the same ones wherever the folder is."""

    share: float
    seed: int = 0

    def darkens(self, content: bytes) -> bool:
        """Return whether this image is one of them."""
        return self.draw(content).random() < self.share

    def draw(self, content: bytes) -> np.random.Generator:
        """Return the random numbers of this image."""
        return np.random.default_rng([self.seed, *hashlib.sha256(content).digest()[:8]])


def write_mix(images: Iterable[Path], folder: Path, out: Path, share: NightShare) -> int:
    """Copy images below `out` as they lie below `folder`; return how many were darkened. Those become PNG files."""
    dark = 0
    for path in images:
        content = path.read_bytes()
        target = out / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not share.darkens(content):
            target.write_bytes(content)
            continue
        draw = share.draw(content)
        draw.random()  # what decided that it is darkened
        bgr = np.asarray(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), np.uint8)
        target.with_name(f"{path.stem}-night.png").write_bytes(cv2.imencode(".png", darkened(bgr, draw))[1].tobytes())
        dark += 1
    return dark


def main() -> None:
    """Write the copy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="images of the day: a folder for each class")
    parser.add_argument("out", type=Path, help="where the copy goes")
    parser.add_argument("--share", type=float, default=0.5, help="of the images that are darkened (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which ones, and how (%(default)s)")
    options = parser.parse_args()
    images = sorted(path for path in options.folder.rglob("*") if path.is_file())
    dark = write_mix(images, options.folder, options.out, NightShare(options.share, options.seed))
    print(f"{len(images)} images in {options.out}, {dark} of them darkened")


if __name__ == "__main__":
    main()
