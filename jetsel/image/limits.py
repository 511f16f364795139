"""Limits of an image's size, and the errors about a bad image."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.files import open_regular

MAX_SIDE_PX = 65_535
"""JPEG's largest side (ITU-T T.81, B.2.2); it bounds the tables that OpenCV's resize makes for a side."""

_CONVERT = "convert it to JPEG or PNG"
_FRAME = "send one of its frames as a JPEG or PNG"
_SOURCE = "check its source, as servers send pages in place of images"
_XML = rb"(?:\xef\xbb\xbf)?\s*(?=<).*<"
_OTHER_FORMATS = (  # rejected formats: name, repair, and pattern of the first bytes
    ("a GIF", _FRAME, rb"GIF8"),
    ("a BMP", _CONVERT, rb"BM.{4}\0{4}"),
    ("a TIFF or a camera's raw file", _CONVERT, rb"II[*+U]\0|MM\0[*+]|IIR[OS]|FUJIFILM|.{4}ftypcrx "),
    ("AVIF", _CONVERT, rb".{4}ftyp.{0,40}avi[fs]"),
    ("HEIC", _CONVERT, rb".{4}ftyp(?:hei[cxms]|hev[cxms]|mif[12]|msf1)"),
    ("a video", _FRAME, rb".{4}(?:ftyp|moov|mdat|wide)|RIFF.{4}AVI |\x1aE\xdf\xa3|\0{2}\x01[\xb3\xba]"),
    ("JPEG XL", _CONVERT, rb"\0{3}\x0cJXL |\xff\x0a"),
    ("JPEG 2000", _CONVERT, rb"\0{3}\x0cjP  |\xff\x4f\xff\x51"),
    ("a PDF", _CONVERT, rb"%PDF"),
    ("a ZIP or gzip archive", "unpack it first", rb"PK(?:\x03\x04|\x05\x06)|\x1f\x8b"),
    ("a Git LFS pointer", "fetch the file with `git lfs pull`", rb"version https://git-lfs"),
    ("an HTML page", _SOURCE, _XML + rb"(?i:!doctype html|html|head|body)\b"),
    ("an SVG", _CONVERT, _XML + rb"svg\b"),
    ("JSON", _SOURCE, rb"(?:\xef\xbb\xbf)?\s*[{\[]\s*[\"{\[\]}0-9]"),
    ("text", _SOURCE, rb"[\t\n\f\r -~\x80-\xff]+\Z"),
)


class Limits(msgspec.Struct, frozen=True):
    """The largest accepted image, in bytes as sent and in pixels by its header."""

    max_bytes: int
    max_pixels: int


def check_bytes(n_bytes: int, limits: Limits) -> None:
    """Raise BadImageError for an empty file, ImageTooLargeError for one over the limit."""
    if n_bytes == 0:
        raise BadImageError("the image is empty: 0 bytes; send a whole JPEG, PNG or WebP file")
    if n_bytes > limits.max_bytes:
        raise ImageTooLargeError(
            f"the image has {n_bytes} bytes and at most {limits.max_bytes} are accepted;"
            " send a smaller one or raise [server] max_image_mb"
        )


def check_pixels(width: int, height: int, limits: Limits) -> None:
    """Raise BadImageError for an image without area, ImageTooLargeError for too many pixels."""
    if width <= 0 or height <= 0:
        raise BadImageError(f"the image is damaged: its header gives {width} x {height} pixels")
    if width * height > limits.max_pixels:
        raise ImageTooLargeError(
            f"the image has {width} x {height} = {width * height} pixels and at most {limits.max_pixels} are accepted;"
            " send a smaller one or raise [server] max_image_megapixels"
        )
    if max(width, height) > MAX_SIDE_PX:
        raise ImageTooLargeError(
            f"the image has {width} x {height} pixels, and no side may exceed {MAX_SIDE_PX}, regardless of [server] "
            "max_image_megapixels; send a smaller one"
        )


def truncated(kind: str, where: str) -> BadImageError:
    """Return the error for a file that ends too early. kind: "JPEG", "PNG"; where: "inside a chunk"."""
    return BadImageError(f"the {kind} is truncated: it ends {where}; send the whole file")


def damaged(kind: str, why: str) -> BadImageError:
    """Return the error for a file that contradicts its own format. kind: "JPEG", "PNG"; why: a clause."""
    return BadImageError(f"the {kind} is damaged: {why}; save or send it again")


def other_format(data: memoryview) -> BadImageError:
    """Return the error for a file that is not JPEG, PNG or WebP; its message names the format if that is recognised."""
    start = bytes(data[:1024])
    for name, repair, pattern in _OTHER_FORMATS:
        if re.match(pattern, start, re.DOTALL):
            return BadImageError(f"the image is {name}, not a JPEG, PNG or WebP file: {repair}")
    return BadImageError(f"the image begins with {start[:8]!r}: it is not a JPEG, PNG or WebP file; {_CONVERT}")


def read_file(path: Path, limits: Limits) -> bytes:
    """Return a regular file's bytes, at most one byte over the limit, so that `decode` rejects it. Raises OSError."""
    with open_regular(path) as file:
        return file.read(limits.max_bytes + 1)
