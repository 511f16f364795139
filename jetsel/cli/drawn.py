"""Images that jetsel draws for the demo, and the simulation of a camera at night."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

SIZE_PX = 320
SEED = 7  # of the grain, so that the images are reproducible
STEPS = 40  # ellipses, smaller and brighter, that shade a fruit
FRUIT = {  # name -> half axes in pixels, and colour in BGR
    "an orange on a table": ((100, 100), (20, 130, 250)),
    "a lemon on a table": ((112, 80), (40, 215, 245)),
}


def pictures() -> dict[str, NDArray[np.uint8]]:
    """Return the drawn images, each (320, 320, 3) uint8 BGR, by its description."""
    return {name: _fruit(axes, colour) for name, (axes, colour) in FRUIT.items()}


def at_night(bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image as an infrared camera sees it in the dark: grey, darker, and noisy; (height, width, 3) uint8.

    `calibration/starter/night.py` draws the images that trained the starter family's models for the night.
    """
    gray = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY).astype(np.float32)
    noisy = 0.45 * gray + np.random.default_rng(SEED).normal(0, 4, gray.shape)
    dark = np.clip(noisy, 0, 255).astype(np.uint8)
    return np.asarray(cv2.cvtColor(dark, cv2.COLOR_GRAY2BGR), np.uint8)


def _fruit(axes: tuple[int, int], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return an image of a shaded ellipse on a brown table. axes: its half axes in pixels. colour: BGR."""
    picture = np.empty((SIZE_PX, SIZE_PX, 3), np.uint8)
    picture[:200], picture[200:] = (215, 222, 226), (70, 105, 150)
    cv2.ellipse(picture, (165, 262), (105, 16), 0, 0, 360, (40, 65, 95), -1, cv2.LINE_AA)  # the shadow
    for step in range(STEPS):
        done = step / STEPS
        shade = tuple(min(255.0, c * (0.55 + 0.55 * done) + 60 * done**4) for c in colour)
        size = (int(axes[0] * (1 - done)), int(axes[1] * (1 - done)))
        cv2.ellipse(picture, (160 - int(32 * done), 160 - int(30 * done)), size, 0, 0, 360, shade, -1, cv2.LINE_AA)
    grain = np.random.default_rng(SEED).normal(0, 6, picture.shape)  # like a camera's noise
    soft = cv2.GaussianBlur(picture, (5, 5), 0).astype(np.float64)
    return np.clip(soft + grain, 0, 255).astype(np.uint8)
