"""Which way up a photograph was taken: the EXIF orientation, read and undone, alike for every format.

Pillow's own reader of EXIF is not used: it copies what each entry of a directory points to, so that a block of 64 KB
whose 5,400 entries all point to the whole block takes 350 MB (tests/unit/image/test_bombs.py has the file).
"""

from __future__ import annotations

import struct

import cv2
import numpy as np

UPRIGHT = 1
PREFIX = b"Exif\0\0"  # stands before the TIFF structure in JPEG and, against the specification, in some WebP files
_TAG = 0x0112  # EXIF 2.32, 4.6.4 A: Orientation
_SHORT = 3
_MAX_ENTRIES = 1024  # IFD0 of real cameras has fewer than 100


def orientation_of(block: bytes | memoryview) -> int:
    """Return the orientation, 1 to 8, that an EXIF block says; 1 (upright) where it says none or cannot be read.

    A damaged EXIF block is no reason to refuse a photograph, so nothing is raised.
    """
    tiff = block[len(PREFIX) :] if bytes(block[: len(PREFIX)]) == PREFIX else block
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]))
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (n_entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for number in range(min(n_entries, _MAX_ENTRIES)):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, start + 2 + 12 * number)
            if tag == _TAG:
                return value if kind == _SHORT and 1 <= value <= 8 else UPRIGHT
    except struct.error:  # it ends before what it points to
        pass
    return UPRIGHT


def swaps_sides(orientation: int) -> bool:
    """Whether the upright photograph is as wide as the stored one is high."""
    return orientation >= 5


def upright(bgr: np.ndarray, orientation: int) -> np.ndarray:
    """Return (height, width, 3) uint8 turned upright, C-contiguous: a new array, or the same where it is upright."""
    if swaps_sides(orientation):
        bgr = cv2.transpose(bgr)
    flip = {2: 1, 6: 1, 3: -1, 7: -1, 4: 0, 8: 0}.get(orientation)  # as cv2.flip counts: 1 left and right, -1 both
    return bgr if flip is None else cv2.flip(bgr, flip)
