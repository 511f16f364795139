"""Read images for training, and as a model takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.names import LeftOut
from jetsel.image import InputSpec, Photograph

MOST_BYTES = 4 * 2**30
"""Memory for the pixels; if all images would exceed it, a random sample of them is used."""
SEED = 2018

Reporter = Callable[[str, int, int], None]  # receives the phase, the number of items done, and their total
Result = TypeVar("Result")


def read_images(
    paths: Sequence[Path],
    limits: image.Limits,
    decode_px: int,
    use: Callable[[bytes, Photograph], Result],
    report: Reporter,
) -> list[Result | LeftOut]:
    """Return the result of `use(content, image)` for each file, or LeftOut with the reason if it cannot be read.

    decode_px: shorter side that is needed, see `image.decode`. Several threads call `use`.
    """

    def read_one(path: Path) -> Result | LeftOut:
        try:
            data = image.read_file(path, limits)
            return use(data, image.decode(data, limits, decode_px))
        except (OSError, BadImageError, ImageTooLargeError) as fault:
            return LeftOut(path, f"unreadable: {getattr(fault, 'strerror', None) or fault}")

    results: list[Result | LeftOut] = []
    with ThreadPoolExecutor() as pool:
        for result in pool.map(read_one, paths):
            results.append(result)
            report("looking at the images", len(results), len(paths))
    return results


def read_pixels(
    paths: Sequence[Path], spec: InputSpec, limits: image.Limits, decode_px: int, report: Reporter
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the images at a model's input size, (n, 3, height, width) 0 to 255, and their indices in `paths`, (n,).

    Channels are in the model's order. Unreadable files are skipped, and a random sample is used if all would exceed
    MOST_BYTES.
    """
    most_images = MOST_BYTES // (3 * spec.width_px * spec.height_px)
    rows: list[int] = sorted(np.random.default_rng(SEED).permutation(len(paths))[:most_images].tolist())
    mean, std = (np.array(channel_values, np.float32)[:, None, None] for channel_values in (spec.mean, spec.std))

    def levels_of(_: bytes, decoded: Photograph) -> NDArray[np.uint8]:
        shares = image.model_input(decoded, spec)[0] * std + mean  # undoes the normalisation: 0 to 1
        levels: NDArray[np.uint8] = np.rint(shares * 255).astype(np.uint8)
        return levels

    results = zip(rows, read_images([paths[row] for row in rows], limits, decode_px, levels_of, report), strict=True)
    readable = [(row, levels) for row, levels in results if not isinstance(levels, LeftOut)]
    return np.stack([levels for _, levels in readable]), np.array([row for row, _ in readable])


def normalised(levels: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32]:
    """Return the float32 input of a model from levels of 0 to 255; both (n, 3, height, width)."""
    mean, std = (np.array(channel_values, np.float32)[:, None, None] for channel_values in (spec.mean, spec.std))
    return ((levels.astype(np.float32) / 255 - mean) / std).astype(np.float32)
