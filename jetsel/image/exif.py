"""Which way up a photograph was taken: the EXIF orientation, read and undone, alike for every format."""

from __future__ import annotations

import struct

import cv2
import numpy as np

UPRIGHT = 1
PREFIX = b"Exif\0\0"  # stands before the TIFF structure in JPEG and, against the specification, in some WebP files
_TAG = 0x0112  # EXIF 2.32, 4.6.4 A: Orientation
_SHORT = 3
_ENTRY_BYTES = 12
_MAX_ENTRIES = 1024  # IFD0 of real cameras has fewer than 100


def orientation_of(tiff: memoryview) -> int:
    """Return the orientation, 1 to 8, from a TIFF structure; 1 (upright) where it has none or cannot be read.

    A damaged EXIF block is no reason to refuse a photograph, so nothing is raised.
    """
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]))
    if order is None or len(tiff) < 8:
        return UPRIGHT
    (start,) = struct.unpack_from(f"{order}I", tiff, 4)
    if start + 2 > len(tiff):
        return UPRIGHT
    (n_entries,) = struct.unpack_from(f"{order}H", tiff, start)
    for i in range(min(n_entries, _MAX_ENTRIES)):
        at = start + 2 + i * _ENTRY_BYTES
        if at + _ENTRY_BYTES > len(tiff):
            break
        tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, at)
        if tag == _TAG:
            return value if kind == _SHORT and 1 <= value <= 8 else UPRIGHT
    return UPRIGHT


def swaps_sides(orientation: int) -> bool:
    """Whether the upright photograph is as wide as the stored one is high."""
    return orientation >= 5


def upright(bgr: np.ndarray, orientation: int) -> np.ndarray:
    """Return (height, width, 3) uint8 turned upright, C-contiguous: a new array, or the same where it is upright."""
    if orientation in (5, 6, 7, 8):
        bgr = cv2.transpose(bgr)
    if orientation in (2, 6):
        return cv2.flip(bgr, 1)
    if orientation in (3, 7):
        return cv2.flip(bgr, -1)
    if orientation in (4, 8):
        return cv2.flip(bgr, 0)
    return bgr
