"""Finds near-duplicates among images, and makes folds that keep near-duplicates together."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError

MOST_BITS = 8
"""Largest number of the 64 bits that may differ between near-duplicates.

Measured: among 8,000 unrelated images of 64 x 64 pixels (32 million pairs), no pair differs in 8 bits or fewer, 14
pairs in 10, 113 in 12. At least 99.8 % of the same images stay within 8 bits after scaling by one half or two, saving
as JPEG of quality 20, brightening or noise; 98 % if cropped by 3 % of their sides; 87 % of full-size images cropped at
one corner. The only effect of a false pair is a shared fold.
"""

_SIDE_PX, _LOWEST = 32, 8  # sides of the grey image, and of its coefficients that count
_ROWS = 256  # hashes compared with all others at a time


def perceptual_hash(bgr: NDArray[np.uint8]) -> int:
    """Return 64 bits that are similar for similar images: which low frequencies are above their median (pHash).

    bgr: (height, width, 3) uint8. The bits stand for the 8 x 8 lowest coefficients of the cosine transform of 32 x 32
    grey levels, row by row, highest bit first, as a signed number for SQLite. The median leaves out the mean level.
    Coefficients are rounded so that the hash of a flat image holds no noise.
    """
    gray = cv2.resize(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY), (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA)
    lowest = np.round(cv2.dct(gray.astype(np.float32))[:_LOWEST, :_LOWEST]).ravel()
    return int.from_bytes(np.packbits(lowest > np.median(lowest[1:])).tobytes(), "big", signed=True)


def groups(hashes: NDArray[np.int64], most_bits: int = MOST_BITS) -> NDArray[np.int64]:
    """Return a group number for each hash, (n,), from 0 in order of first appearance.

    Hashes that differ in at most most_bits bits share a group, as do hashes connected through others.
    """
    unique, hash_index = np.unique(hashes, return_inverse=True)
    parent = list(range(len(unique)))
    bits = np.unpackbits(unique.astype(">i8").view(np.uint8).reshape(-1, 8), axis=1)
    signs = bits.astype(np.float32) * 2 - 1  # the product of two rows is 64 minus twice the bits in which they differ
    for start in range(0, len(unique), _ROWS):
        close = signs[start : start + _ROWS] @ signs[start:].T >= 64 - 2 * most_bits
        for row, column in zip(*(side.tolist() for side in np.nonzero(close)), strict=True):
            first, second = _find_root(parent, start + row), _find_root(parent, start + column)
            parent[max(first, second)] = min(first, second)
    numbers: dict[int, int] = {}
    roots = [_find_root(parent, index) for index in hash_index.ravel().tolist()]
    return np.array([numbers.setdefault(root, len(numbers)) for root in roots], np.int64)


def _find_root(parent: list[int], item: int) -> int:
    """Return the smallest member of the item's group (union-find), and shorten its path there."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


def assign_folds(groups: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return each image's fold for cross-validation, (n,) int64 from 0. groups: (n,); no group is divided.

    Each group, the largest first, goes to the smallest fold so far; `seed` orders equal groups. Raises CalibrationError
    if there are fewer groups than folds.
    """
    _, group_index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise CalibrationError(
            f"{len(groups)} images, {len(sizes)} of them distinct, are too few for {folds} folds: add images"
        )
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    fold_sizes = np.zeros(folds, np.int64)
    fold_of_group = np.empty(len(sizes), np.int64)
    for group in order:
        fold = int(fold_sizes.argmin())
        fold_of_group[group] = fold
        fold_sizes[fold] += sizes[group]
    fold_of_image: NDArray[np.int64] = fold_of_group[group_index]
    return fold_of_image
