"""Pictures that the demo draws itself, so that it has something to show where no photograph is installed."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

SIZE_PX = 320
SEED = 7  # of the grain: the pictures are the same each time


def pictures() -> dict[str, Picture]:
    """Return what is drawn by its description, each (320, 320, 3) uint8 BGR."""
    return {"an orange on a table": orange(), "a lemon on a table": lemon(), "a bus on a road": bus()}


def orange() -> Picture:
    """Draw a shaded orange disc with a dimple."""
    picture = _table()
    _fruit(picture, (100, 100), (20, 130, 250))
    cv2.circle(picture, (170, 105), 7, (20, 90, 60), -1, cv2.LINE_AA)
    return _finished(picture)


def lemon() -> Picture:
    """Draw a shaded yellow ellipse with two tips."""
    picture = _table()
    for x in (48, 272):
        cv2.circle(picture, (x, 160), 18, (40, 200, 230), -1, cv2.LINE_AA)
    _fruit(picture, (112, 80), (40, 215, 245))
    return _finished(picture)


def bus() -> Picture:
    """Draw a yellow bus with windows and wheels on a road under a blue sky."""
    picture = np.full((SIZE_PX, SIZE_PX, 3), (235, 190, 130), np.uint8)
    picture[190:] = (80, 80, 85)
    cv2.rectangle(picture, (30, 90), (290, 215), (0, 180, 250), -1)
    cv2.rectangle(picture, (30, 160), (290, 166), (20, 20, 20), -1)
    for x in range(42, 250, 42):
        cv2.rectangle(picture, (x, 104), (x + 32, 145), (90, 70, 50), -1)
    for x in (85, 235):
        cv2.circle(picture, (x, 218), 26, (20, 20, 20), -1, cv2.LINE_AA)
        cv2.circle(picture, (x, 218), 11, (150, 150, 150), -1, cv2.LINE_AA)
    for x in range(0, SIZE_PX, 64):
        cv2.rectangle(picture, (x, 276), (x + 34, 282), (235, 235, 235), -1)
    return _finished(picture)


def _table() -> Picture:
    """Return a brown table before a light wall."""
    picture = np.empty((SIZE_PX, SIZE_PX, 3), np.uint8)
    picture[:200], picture[200:] = (215, 222, 226), (70, 105, 150)
    cv2.ellipse(picture, (165, 262), (105, 16), 0, 0, 360, (40, 65, 95), -1, cv2.LINE_AA)  # the shadow
    return picture


def _fruit(picture: Picture, axes: tuple[int, int], colour: tuple[int, int, int]) -> None:
    """Draw an ellipse that grows lighter towards a point above and left of its middle."""
    steps = 40
    for step in range(steps):
        left = 1 - step / steps
        shade = tuple(min(255.0, c * (0.55 + 0.55 * step / steps) + 60 * (step / steps) ** 4) for c in colour)
        centre = (160 - int(32 * step / steps), 160 - int(30 * step / steps))
        size = (max(1, int(axes[0] * left)), max(1, int(axes[1] * left)))
        cv2.ellipse(picture, centre, size, 0, 0, 360, shade, -1, cv2.LINE_AA)


def _finished(picture: Picture) -> Picture:
    """Soften the edges and add a camera's grain."""
    grain = np.random.default_rng(SEED).normal(0, 6, picture.shape)
    soft = cv2.GaussianBlur(picture, (5, 5), 0).astype(np.float64)
    return np.clip(soft + grain, 0, 255).astype(np.uint8)
