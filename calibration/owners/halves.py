"""Labelled images in two halves: images that are nearly the same are on one side, and each class is on both."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from jetsel.features.near_duplicates import groups, perceptual_hash

Labelled = tuple[Path, str]
"""An image and its class."""


def listed(folder: Path) -> list[Labelled]:
    """Return the images of a folder that has a folder for each class. Raises SystemExit if there are none."""
    found = [(path.resolve(), path.parent.name) for path in sorted(folder.glob("*/*")) if path.is_file()]
    if not found:
        raise SystemExit(f"{folder}: no images there; it must have one folder of images for each class")
    return found


def halves(images: Sequence[Labelled], seed: int) -> tuple[list[Labelled], list[Labelled]]:
    """Return two halves that share no source: images that are nearly the same, as frames of a clip, are on one side.

    Large groups of such images are dealt first, in an order drawn by the seed; each goes where its classes have fewer
    images, so that each class is on both sides as evenly as the groups allow.
    """
    hashes = [perceptual_hash(cv2.imread(str(path), cv2.IMREAD_COLOR).astype(np.uint8)) for path, _ in images]
    members = defaultdict(list)
    for image, group in zip(images, groups(np.array(hashes, np.int64)).tolist(), strict=True):
        members[group].append(image)
    drawn = [members[group] for group in np.random.default_rng(seed).permutation(len(members)).tolist()]
    sides: tuple[list[Labelled], list[Labelled]] = ([], [])
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for group in sorted(drawn, key=len, reverse=True):
        labels = [label for _, label in group]
        side = min((0, 1), key=lambda one: (sum(counts[one][label] for label in labels), len(sides[one])))
        sides[side].extend(group)
        counts[side].update(labels)
    return sides


def write_list(images: Sequence[Labelled], file: Path) -> Path:
    """Write the CSV of path,label that `jetsel calibrate` and `jetsel evaluate` read; return the file."""
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("path", "label"), *sorted(images)])
    return file
