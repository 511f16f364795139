"""Pictures that jetsel draws itself for the demo: if no photograph is installed, and what a camera gives at night."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

SIZE_PX = 320
SEED = 7  # of the grain: the pictures are the same each time
STEPS = 40  # of the shading
FRUIT = {  # the half axes in pixels, and the colour in BGR
    "an orange on a table": ((100, 100), (20, 130, 250)),
    "a lemon on a table": ((112, 80), (40, 215, 245)),
}


def pictures() -> dict[str, NDArray[np.uint8]]:
    """Return what is drawn by its description, each (320, 320, 3) uint8 BGR."""
    return {name: _fruit(axes, colour) for name, (axes, colour) in FRUIT.items()}


def at_night(bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image as an infrared camera gives it in the dark: without colour, darker, and with noise.

    bgr: (height, width, 3) uint8; so is what is returned. `calibration/starter/night.py` draws those that the starter
    family's models of the night were trained on.
    """
    gray = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY).astype(np.float32)
    noisy = 0.45 * gray + np.random.default_rng(SEED).normal(0, 4, gray.shape)
    dark = np.clip(noisy, 0, 255).astype(np.uint8)
    return np.asarray(cv2.cvtColor(dark, cv2.COLOR_GRAY2BGR), np.uint8)


def _fruit(axes: tuple[int, int], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Draw an ellipse on a brown table before a light wall; it grows lighter above and left of its middle."""
    picture = np.empty((SIZE_PX, SIZE_PX, 3), np.uint8)
    picture[:200], picture[200:] = (215, 222, 226), (70, 105, 150)
    cv2.ellipse(picture, (165, 262), (105, 16), 0, 0, 360, (40, 65, 95), -1, cv2.LINE_AA)  # the shadow
    for step in range(STEPS):
        done = step / STEPS
        shade = tuple(min(255.0, c * (0.55 + 0.55 * done) + 60 * done**4) for c in colour)
        size = (int(axes[0] * (1 - done)), int(axes[1] * (1 - done)))
        cv2.ellipse(picture, (160 - int(32 * done), 160 - int(30 * done)), size, 0, 0, 360, shade, -1, cv2.LINE_AA)
    grain = np.random.default_rng(SEED).normal(0, 6, picture.shape)  # as a camera's
    soft = cv2.GaussianBlur(picture, (5, 5), 0).astype(np.float64)
    return np.clip(soft + grain, 0, 255).astype(np.uint8)
