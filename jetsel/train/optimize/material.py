"""Prepare images for training and for finding activation ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, CalibrationError, ImageTooLargeError
from jetsel.image import InputSpec

FEWEST = 50
"""Smallest number of images for useful ranges or weights."""
MOST_BYTES = 4 * 2**30
"""Memory for the pixels; if all images would exceed it, a random sample of them is used."""
SEED = 2018

Tell = Callable[[str, int, int], None]


def pixels(
    paths: Sequence[Path],
    spec: InputSpec,
    limits: image.Limits,
    decode_px: int,
    tell: Tell,
    *,
    least: int = FEWEST,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the images at the model's size, and the index of each in `paths`.

    The images are levels of 0 to 255, (n, 3, height, width), in the model's order of channels. Unreadable files are
    skipped, and a random sample is used if all would exceed MOST_BYTES. Raises CalibrationError if fewer than `least`
    images are left.
    """
    most = MOST_BYTES // (3 * spec.width_px * spec.height_px)
    rows: list[int] = list(range(len(paths)))
    if len(paths) > most:
        rows = sorted(np.random.default_rng(SEED).permutation(len(paths))[:most].tolist())
    mean, std = (np.array(three, np.float32)[:, None, None] for three in (spec.mean, spec.std))

    def read_levels(path: Path) -> NDArray[np.uint8] | None:
        try:
            decoded = image.decode(image.read_file(path, limits), limits, decode_px)
        except (OSError, BadImageError, ImageTooLargeError):
            return None
        shares = image.model_input(decoded, spec)[0] * std + mean  # undoes the normalisation: 0 to 1
        levels: NDArray[np.uint8] = np.rint(shares * 255).astype(np.uint8)
        return levels

    arrays, kept_rows = [], []
    with ThreadPoolExecutor() as pool:
        for done, (row, levels) in enumerate(
            zip(rows, pool.map(read_levels, (paths[row] for row in rows)), strict=True), 1
        ):
            if levels is not None:
                arrays.append(levels)
                kept_rows.append(row)
            tell("looking at the images", done, len(rows))
    if len(arrays) < least:
        raise CalibrationError(f"{len(arrays)} images can be read, and {least} are the minimum: add images")
    return np.stack(arrays), np.array(kept_rows)


def normalised(levels: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32]:
    """Return levels (n, 3, height, width) normalised for the model, float32."""
    mean, std = (np.array(three, np.float32)[:, None, None] for three in (spec.mean, spec.std))
    return ((levels.astype(np.float32) / 255 - mean) / std).astype(np.float32)
