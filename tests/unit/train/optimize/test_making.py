"""Images that teach a cheaper model and those that compare it are never nearly the same."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from jetsel import image
from jetsel.train.optimize.making import Order, _parted
from jetsel.zoo import STARTER, scan

FAMILY = scan([STARTER]).families["starter"]


def test_near_duplicates_and_files_that_cannot_be_read_are_on_no_two_sides(tmp_path: Path) -> None:
    draw, paths = np.random.default_rng(2), []
    for clip in range(9):
        scene = cv2.resize(draw.integers(0, 256, (8, 8, 3), np.uint8), (96, 96), interpolation=cv2.INTER_CUBIC)
        for frame in range(5):
            paths.append(tmp_path / f"{clip}-{frame}.png")
            cv2.imwrite(str(paths[-1]), np.clip(scene + draw.normal(0, 2, scene.shape), 0, 255).astype(np.uint8))
    paths.append(tmp_path / "broken.png")
    paths[-1].write_bytes(b"no image")
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    images = [(path, 0) for path in paths]
    order = Order(FAMILY.models[0], FAMILY, "int8", images, limits, 1, False, 1.0, tmp_path)
    learn, held = ([path.name for path, _ in part] for part in _parted(order, lambda *_: None))
    assert (len(learn), len(held)) == (30, 15)
    assert {name[0] for name in learn}.isdisjoint({name[0] for name in held})
