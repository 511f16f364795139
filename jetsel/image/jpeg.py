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
MAX_LARGEST_SCANS = 16
"""Scans of the largest picture that the limits allow; a smaller one may have as many more, up to MAX_SCANS."""
MAX_BEFORE_SCAN = 1024
"""Segments that are walked to the first scan: 10 MB of EXIF are 160, a colour profile has 255 at most."""
MAX_FILL_BYTES = 65_536
"""Bytes between those segments, of all together: some cameras align theirs by FF, to a few kilobytes."""

_TEM, _SOI, _EOI, _SOS, _APP1 = 0x01, 0xD8, 0xD9, 0xDA, 0xE1
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # without DHT, JPG and DAC
_ALONE = frozenset((_TEM, _EOI))
_WITH_SEGMENT = frozenset((*range(0x02, 0xD0), *range(0xDA, 0xFF)))  # without RST0..7, SOI and FF, which may fill
_TELLING = _SOF | {_SOS, _APP1, _EOI}  # what is looked at before the first scan
_HEAD = struct.Struct(">BBH").unpack_from  # FF, a marker, and the length of its segment
_SEQUENTIAL = (0xC0, 0xC1)
# Inside a scan FF is followed by 00 (a data byte) or D0..D7 (restart); before a marker there may be any number of FF.
# One search in C passes over a whole scan: a loop in Python over its FF bytes would take twice as long.
_NEXT_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_STEP_BYTES = 1 << 18  # searched at a time: no other thread of the interpreter runs meanwhile


class _Frame(NamedTuple):
    width: int
    height: int
    components_at_once: int | None
    """A scan of this many components is the picture's only one; None where the frame is no sequential one."""


class Start(NamedTuple):
    """A JPEG up to the data of its first scan, which begins at `scan_at`.

    is_streamed: that scan holds the whole picture, so that it is decoded row by row. exif: its TIFF structure.
    """

    width: int
    height: int
    is_streamed: bool
    exif: memoryview | None
    scan_at: int


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole JPEG; what follows its end of image (EOI) is not looked at.

    Raises BadImageError (truncated, damaged) and ImageTooLargeError.
    """
    return finish(data, begin(data, limits), limits)


def begin(data: memoryview, limits: Limits) -> Start:
    """Read up to the first scan and no further; raises BadImageError (truncated, damaged) and ImageTooLargeError."""
    frame: _Frame | None = None
    tiff: memoryview | None = None
    at, fill = 2, MAX_FILL_BYTES
    for _ in range(MAX_BEFORE_SCAN):
        marker, found_at, following = _next_segment(data, at, at + fill + 2)
        fill -= found_at - 2 - at
        at = following
        if marker not in _TELLING:
            continue
        if marker == _EOI:
            raise damaged(KIND, "it holds no picture")
        segment = data[found_at + 2 : following]
        if marker in _SOF:
            _check_only(frame)
            frame = _frame(marker, segment, limits)
        elif marker == _SOS:
            if frame is None:
                raise damaged(KIND, "it has no frame header before its scan")
            return Start(frame.width, frame.height, _is_only_scan(segment, frame), tiff, at)
        elif tiff is None and segment[: len(exif.PREFIX)] == exif.PREFIX:
            tiff = segment[len(exif.PREFIX) :]
    raise damaged(KIND, f"no picture begins within its first {MAX_BEFORE_SCAN} segments")


def finish(data: memoryview, start: Start, limits: Limits) -> Header:
    """Return the header of a JPEG that begins so, once it is seen to be whole; `data` is what `begin` read.

    Only a walk over the segments finds the picture's own EOI: EXIF thumbnails and second pictures have theirs.
    Raises BadImageError (truncated, damaged).
    """
    if not _ends_with_its_only_scan(data, start):
        _walk_scans(data, start, limits)
    orientation = exif.UPRIGHT if start.exif is None else exif.orientation_of(start.exif)
    return Header(start.width, start.height, orientation)


def _walk_scans(data: memoryview, start: Start, limits: Limits) -> None:
    """Walk from the first scan to the EOI, and raise BadImageError where there is none, or too much before it."""
    scans, at = 1, start.scan_at
    most = min(MAX_SCANS, MAX_LARGEST_SCANS * limits.max_pixels // (start.width * start.height))
    for _ in range(MAX_SEGMENTS):
        marker, _, at = _next_segment(data, at, len(data))
        if marker == _EOI:
            return
        if marker in _SOF:
            _check_only(start)
        if marker == _SOS:
            scans += 1
            if scans > most:
                raise damaged(KIND, f"over {most} scans of {start.width} x {start.height} pixels")
    raise damaged(KIND, f"it has more than {MAX_SEGMENTS} segments")


def _check_only(frame: _Frame | Start | None) -> None:
    """Raise BadImageError where a second frame header follows the first."""
    if frame is not None:
        raise damaged(KIND, "it has two frame headers")


def _next_segment(data: memoryview, at: int, end: int) -> tuple[int, int, int]:
    """Return the next marker before `end`, the place after it, and that after its segment, if it has one."""
    size = len(data)
    if at + 4 <= size:  # nearly always it stands there, and all of its segment is there
        first, marker, length = _HEAD(data, at)
        if first == 0xFF and marker in _WITH_SEGMENT and 2 <= length <= size - at - 2:
            return marker, at + 2, at + 2 + length
    marker, at = _next_marker(data, at, end)
    return marker, at, at if marker in _ALONE else at + _segment_bytes(data, at)


def _next_marker(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the next marker before `end`, whatever stands before it (as libjpeg does), and the place after it."""
    last = min(end, len(data))
    while at < last:
        found = _NEXT_MARKER.search(data, at, min(at + _STEP_BYTES, last))
        if found is not None:
            marker = data[found.end() - 1]
            if marker == _SOI:
                raise damaged(KIND, "a second picture begins inside the first")
            return marker, found.end()
        at += _STEP_BYTES - 1  # a marker may lie across two steps
    if end < len(data):
        raise damaged(KIND, f"over {MAX_FILL_BYTES} bytes stand between the segments before its picture")
    raise truncated(KIND, "before its end-of-image marker")


def _segment_bytes(data: memoryview, at: int) -> int:
    """Return the segment's length, the two bytes that tell it included."""
    if at + 2 > len(data):
        raise truncated(KIND, "inside a segment's length")
    length = int.from_bytes(data[at : at + 2], "big")
    if length < 2:
        raise damaged(KIND, f"a segment of {length} bytes")
    if at + length > len(data):
        raise truncated(KIND, "inside a segment")
    return length


def _frame(marker: int, segment: memoryview, limits: Limits) -> _Frame:
    if len(segment) < 6:
        raise damaged(KIND, "its frame header is too short")
    _, height, width, components = struct.unpack_from(">BHHB", segment)
    check_pixels(width, height, limits)
    return _Frame(width, height, components if marker in _SEQUENTIAL else None)


def _ends_with_its_only_scan(data: memoryview, start: Start) -> bool:
    """Whether the last two bytes are an EOI, and prove the only scan whole: inside one these two never stand together.

    This spares nearly every photograph the search through its scan.
    """
    return start.is_streamed and bytes(data[max(start.scan_at, len(data) - 2) :]) == bytes((0xFF, _EOI))


def _is_only_scan(segment: memoryview, frame: _Frame) -> bool:
    """Whether this scan's header (T.81, B.2.3) says that it holds every component of a sequential frame."""
    return len(segment) > 0 and segment[0] == frame.components_at_once
