"""What a caller holds becomes frame two: every accepted kind, byte by byte, and every refusal."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from PIL import Image

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.client.photograph import Channels, payload_of
from jetsel.wire import Pixels

# Two rows of three pixels whose every byte is different.
PICTURE = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
BYTES = bytes(range(18))


def taken(image: Any, channels: Channels = "bgr", max_image_mb: float = 16.0) -> tuple[bytes, Pixels | None]:
    payload = payload_of(image, channels, max_image_mb)
    return bytes(payload.data), payload.pixels


def test_encoded_bytes_are_sent_as_they_are() -> None:
    for image in (b"abc", bytearray(b"abc"), memoryview(b"abc"), np.frombuffer(b"abc", np.uint8)):
        assert taken(image) == (b"abc", None)


def test_a_path_is_read_whatever_its_type(tmp_path: Path) -> None:
    file = tmp_path / "cat.jpg"
    file.write_bytes(b"abc")
    assert taken(file) == taken(str(file)) == (b"abc", None)


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cat.jpg")
    for path in (tmp_path / "cat.jpg", "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            taken(path)


def test_memory_that_is_contiguous_is_not_copied() -> None:
    payload = payload_of(PICTURE, "bgr", 16.0)
    assert np.shares_memory(np.frombuffer(payload.data, np.uint8), PICTURE)


@pytest.mark.parametrize(
    ("image", "data", "layout"),
    [
        (PICTURE, BYTES, "bgr8"),
        (PICTURE[:, :, 0], bytes(range(0, 18, 3)), "gray8"),
        (PICTURE[:, :, :1], bytes(range(0, 18, 3)), "gray8"),
        (PICTURE[:, :, ::-1], bytes([2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 17, 16, 15]), "bgr8"),
        (PICTURE[:, 1:], bytes([3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17]), "bgr8"),
        (PICTURE[::-1], bytes([*range(9, 18), *range(9)]), "bgr8"),
        (np.asfortranarray(PICTURE), BYTES, "bgr8"),
    ],
    ids=["whole", "gray", "gray with an axis", "channels turned round", "a crop", "upside down", "columns first"],
)
def test_an_array_is_sent_raw_row_after_row_in_the_order_that_was_said(
    image: np.ndarray, data: bytes, layout: Any
) -> None:
    width = image.shape[1]
    pixels = Pixels(layout, width=width, height=2, stride=width * (1 if layout == "gray8" else 3))
    assert taken(image) == (data, pixels)
    if layout == "bgr8":
        assert taken(image, "rgb") == (data, structs.replace(pixels, format="rgb8"))


def test_an_image_that_names_its_channels_is_believed() -> None:
    assert taken(Image.fromarray(PICTURE), "bgr") == (BYTES, Pixels("rgb8", width=3, height=2, stride=9))
    with pytest.raises(BadImageError, match=r"R, G, B, A.*image\.convert"):
        taken(Image.new("RGBA", (3, 2)))


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (PICTURE.astype(np.float32), "uint8"),
        (PICTURE.astype(np.int8), "uint8"),
        (np.zeros((2, 3, 4), np.uint8), r"\(2, 3, 4\)"),
        (np.uint8(7), "shape"),
        (np.zeros((0, 3, 3), np.uint8), "empty"),
        (b"", "empty"),
        (None, "NoneType is not an image"),
        ([[1, 2], [3, 4]], "list is not an image"),
    ],
)
def test_what_is_no_photograph_is_refused(image: Any, said: str) -> None:
    with pytest.raises(BadImageError, match=said):
        taken(image)


@pytest.mark.parametrize("kind", ["path", "bytes", "array"])
def test_past_the_limit_nothing_is_sent(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "large"

    def image(size: int) -> Any:
        file.write_bytes(bytes(size))
        return {"path": file, "bytes": bytes(size), "array": np.zeros((1, size), np.uint8)}[kind]

    assert len(taken(image(1000), max_image_mb=0.001)[0]) == 1000
    with pytest.raises(ImageTooLargeError, match="max_image_mb"):
        taken(image(1001), max_image_mb=0.001)
