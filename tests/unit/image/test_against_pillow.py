"""What Pillow and OpenCV both decode, jetsel decodes: mutations of valid files find refusals that only it makes."""

from __future__ import annotations

import io
import re
import warnings

import cv2
import numpy as np
import pytest
from PIL import Image

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image import decode
from tests.unit.image.corpus import BGR, PICTURE, grey_png, saved
from tests.unit.image.files import LIMITS, encoded, tiff
from tests.unit.image.mutants import mutants

WHOLE_PX = 1_000_000
DOCUMENTED = re.compile(
    "is truncated: it ends|more pixels than its header gives|fail their checksum|is animated|less than a tenth"
)
"""Why jetsel alone refuses a file, as docs/protocol.md says."""

LEVELS = np.linspace(0, 65_535, 48 * 32).astype(int).reshape(32, 48)
WHOLE = {
    "JPEG": saved("JPEG", exif=tiff(6)),
    "JPEG, progressive": saved("JPEG", progressive=True),
    "JPEG, grey": saved("JPEG", PICTURE.convert("L")),
    "JPEG, CMYK": saved("JPEG", PICTURE.convert("CMYK")),
    "JPEG, restart markers": encoded(".jpg", BGR, cv2.IMWRITE_JPEG_RST_INTERVAL, 2),
    "PNG": saved("PNG", exif=tiff(6)),
    "PNG, alpha": saved("PNG", PICTURE.convert("RGBA")),
    "PNG, palette": saved("PNG", PICTURE.quantize(16)),
    "PNG, 1 bit": saved("PNG", PICTURE.convert("1")),
    "PNG, 16 bits": grey_png(LEVELS, 16),
    "WebP, lossy": saved("WEBP", exif=tiff(6)),
    "WebP, lossless": saved("WEBP", lossless=True),
    "WebP, alpha": saved("WEBP", PICTURE.convert("RGBA")),
}


def size_in_pillow(data: bytes) -> tuple[int, int] | None:
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as image:
            warnings.simplefilter("ignore")
            image.load()
            return image.size
    except Exception:  # it raises whatever its plugins meet
        return None


def is_read_by_opencv(data: bytes) -> bool:
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) is not None
    except cv2.error:
        return False


def refused_alone(data: bytes) -> str | None:
    """Why jetsel alone refuses a file, for no documented reason; None if it does not."""
    try:
        bgr = decode(data, LIMITS, WHOLE_PX).bgr
    except (BadImageError, ImageTooLargeError) as error:
        is_documented = isinstance(error, ImageTooLargeError) or DOCUMENTED.search(str(error))
        is_read = not is_documented and size_in_pillow(data) is not None and is_read_by_opencv(data)
        return str(error) if is_read else None
    size = size_in_pillow(data)
    return None if size is None or sorted(bgr.shape[:2]) == sorted(size) else f"{size} in Pillow, {bgr.shape} here"


@pytest.mark.parametrize("name", WHOLE)
def test_jetsel_alone_refuses_none_of_a_few_mutants(name: str) -> None:
    assert [why for why in map(refused_alone, mutants(WHOLE[name], 40, seed=1)) if why] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_jetsel_alone_refuses_none_of_many_mutants(name: str) -> None:
    assert [why for why in map(refused_alone, mutants(WHOLE[name], 1500, seed=2)) if why] == []
