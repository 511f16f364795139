"""Read a JPEG's size and check that all of it is there, before anything is decoded (ITU-T T.81, annex B)."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from jetsel.image import exif
from jetsel.image.header import MAX_SEGMENTS, Header, damaged, truncated
from jetsel.image.limits import Limits, check_pixels

KIND = "JPEG"
MAX_SCANS = 64
"""Each scan of a progressive file costs a pass over all coefficients, however short it is; encoders write about 10."""
MAX_BEFORE_SCAN = 1024
"""Segments that are walked to the first scan at admission: 10 MB of EXIF are 160, a colour profile has 255 at most."""

_TEM, _SOI, _EOI, _SOS, _APP1 = 0x01, 0xD8, 0xD9, 0xDA, 0xE1
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # without DHT, JPG and DAC
_SEQUENTIAL = (0xC0, 0xC1)
# Inside a scan FF is followed by 00 (a data byte) or D0..D7 (restart); before a marker there may be any number of FF.
# One search in C passes over a whole scan: a loop in Python over its FF bytes would take twice as long.
_NEXT_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


class _Frame(NamedTuple):
    width: int
    height: int
    components_at_once: int | None
    """A scan of this many components is the picture's only one; None where the frame is no sequential one."""


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole JPEG; what follows its end of image (EOI) is not looked at.

    Only a walk over the segments finds the picture's own EOI: EXIF thumbnails and second pictures have theirs.
    Raises BadImageError (truncated, damaged) and ImageTooLargeError.
    """
    frame: _Frame | None = None
    orientation: int | None = None
    scans, at = 0, 2
    for _ in range(MAX_SEGMENTS):
        marker, at = _next_marker(data, at)
        if marker == _TEM:
            continue
        if marker == _EOI:
            break
        segment = _segment(data, at)
        at += 2 + len(segment)
        if marker in _SOF:
            if frame is not None:
                raise damaged(KIND, "it has two frame headers")
            frame = _frame(marker, segment, limits)
        elif marker == _SOS:
            scans += 1
            if frame is None or scans > MAX_SCANS:
                raise damaged(
                    KIND, "it has no frame header before its scan" if frame is None else f"over {MAX_SCANS} scans"
                )
            if _ends_with_its_only_scan(data, at, segment, frame):
                break
        elif marker == _APP1 and orientation is None and segment[:6] == exif.PREFIX:
            orientation = exif.orientation_of(segment[6:])
    else:
        raise damaged(KIND, f"it has more than {MAX_SEGMENTS} segments")
    if frame is None or scans == 0:
        raise damaged(KIND, "it holds no picture")
    return Header(frame.width, frame.height, orientation or exif.UPRIGHT)


def size(data: memoryview, limits: Limits) -> tuple[int, int, bool]:
    """Return width, height, and whether its first scan holds the whole picture, so that it is decoded row by row.

    Reads up to that scan and no further. Raises BadImageError (truncated, damaged) and ImageTooLargeError.
    """
    frame: _Frame | None = None
    at = 2
    for _ in range(MAX_BEFORE_SCAN):
        marker, at = _next_marker(data, at)
        if marker == _TEM:
            continue
        if marker == _EOI:
            raise damaged(KIND, "it holds no picture")
        segment = _segment(data, at)
        at += 2 + len(segment)
        if marker in _SOF:
            frame = _frame(marker, segment, limits)
        elif marker == _SOS and frame is not None:
            return frame.width, frame.height, _is_only_scan(segment, frame)
    raise damaged(KIND, f"no picture begins within its first {MAX_BEFORE_SCAN} segments")


def _next_marker(data: memoryview, at: int) -> tuple[int, int]:
    """Return the next marker, whatever stands before it (as libjpeg does), and the place after it."""
    found = _NEXT_MARKER.search(data, at)
    if found is None:
        raise truncated(KIND, "before its end-of-image marker")
    marker = data[found.end() - 1]
    if marker == _SOI:
        raise damaged(KIND, "a second picture begins inside the first")
    return marker, found.end()


def _segment(data: memoryview, at: int) -> memoryview:
    """Return the segment's content, without the two bytes of its length."""
    if at + 2 > len(data):
        raise truncated(KIND, "inside a segment's length")
    (length,) = struct.unpack_from(">H", data, at)
    if length < 2:
        raise damaged(KIND, f"a segment of {length} bytes")
    if at + length > len(data):
        raise truncated(KIND, "inside a segment")
    return data[at + 2 : at + length]


def _frame(marker: int, segment: memoryview, limits: Limits) -> _Frame:
    if len(segment) < 6:
        raise damaged(KIND, "its frame header is too short")
    _, height, width, components = struct.unpack_from(">BHHB", segment)
    check_pixels(width, height, limits)
    return _Frame(width, height, components if marker in _SEQUENTIAL else None)


def _ends_with_its_only_scan(data: memoryview, scan_at: int, segment: memoryview, frame: _Frame) -> bool:
    """Whether the last two bytes are an EOI, and prove the only scan whole: inside one these two never stand together.

    This spares nearly every photograph the search through its scan.
    """
    return _is_only_scan(segment, frame) and bytes(data[max(scan_at, len(data) - 2) :]) == bytes((0xFF, _EOI))


def _is_only_scan(segment: memoryview, frame: _Frame) -> bool:
    """Whether this scan's header (T.81, B.2.3) says that it holds every component of a sequential frame."""
    return len(segment) > 0 and segment[0] == frame.components_at_once
