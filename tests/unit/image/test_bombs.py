"""Small files that would cost much: what they announce is never allocated, and what they hold never unpacked."""

import resource
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

import cv2
import pytest

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image import Limits, decode
from tests.unit.image.files import (
    EXIF,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    jpeg_segment,
    noise,
    png,
    png_chunk,
    riff,
    webp_chunk,
    with_app1,
)

DEFAULTS = Limits(16_000_000, 50_000_000)  # as the daemon has them unless told otherwise
NEEDED = 224
ROW = b"\0" + bytes(9)  # 3 x 1 pixels of 24 bits


def zeros(megabytes: int) -> bytes:
    """So many MB of zeros as zlib packs them: a thousandth."""
    packing = zlib.compressobj(9)
    return b"".join(packing.compress(bytes(1 << 20)) for _ in range(megabytes)) + packing.flush()


@contextmanager
def little(most_s: float = 1.0, most_mb: float = 40.0) -> Iterator[None]:
    """Fail where what stands inside takes more processor time or memory than any small file may."""
    peak_kb, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    tracemalloc.start()
    try:
        yield
        _, traced_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.thread_time() - began_s < most_s
    assert traced_bytes < most_mb * 1e6
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb) / 1024 < most_mb


def test_what_a_header_says_is_refused_before_anything_is_allocated():
    """A JPEG states a side in 16 bits."""
    png_header = png(100_000, 100_000, 8, 2, b"")[:33]
    for data in (png_header, png_header + png_chunk(b"IDAT", zeros(64)), flat_jpeg(3, 65_535, 65_535)):
        with little(most_mb=5), pytest.raises(ImageTooLargeError):
            decode(data, DEFAULTS, NEEDED)


def test_pixels_that_unpack_to_too_many_bytes_are_refused_once_there_are_too_many():
    data = png(3, 1, 8, 2, b"").replace(png_chunk(b"IDAT", zlib.compress(b"")), png_chunk(b"IDAT", zeros(64)))
    interlaced = data[:8] + png_chunk(b"IHDR", data[16:28] + b"\1") + data[33:]
    for whole in (data, interlaced):
        with little(), pytest.raises(BadImageError, match="more pixels than its header gives"):
            decode(whole, DEFAULTS, NEEDED)


EIGHT_MB = zeros(7)
TEXTS = {
    "zTXt": lambda n: png_chunk(b"zTXt", b"a%d\0\0" % n + EIGHT_MB),
    "iTXt": lambda n: png_chunk(b"iTXt", b"a%d\0\1\0\0\0" % n + EIGHT_MB),
    "iCCP": lambda n: png_chunk(b"iCCP", b"a%d\0\0" % n + EIGHT_MB),
    "sPLT": lambda n: png_chunk(b"sPLT", b"a%d\0\x08" % n + bytes(6 * 1000)),
}


@pytest.mark.parametrize("chunk", TEXTS.values(), ids=TEXTS)
def test_texts_and_profiles_of_a_png_are_never_unpacked(chunk, capfd):
    for place in ("before", "after"):
        data = png(3, 1, 8, 2, ROW, **{place: b"".join(chunk(number) for number in range(90))})
        with little():
            assert decode(data, DEFAULTS, NEEDED).bgr.tolist() == [[[0, 0, 0]] * 3]
    assert capfd.readouterr() == ("", "")  # libpng's own lines about each would fill the log


def test_a_directory_of_exif_whose_entries_all_point_to_all_of_it_costs_nothing():
    """Pillow copies 64 KB for each of 5,400 entries; and a directory that points at itself never ends for some."""
    whole = b"\0\2\0\0\xff\0\0\0\0\x08"  # text, 65,280 bytes from byte 8 on
    entries = b"".join(number.to_bytes(2, "big") + whole for number in range(0x1000, 0x1000 + 5400))
    itself = b"MM\0*\0\0\0\x08\0\0\0\0\0\x08"
    for tiff in (b"MM\0*\0\0\0\x08\x15\x18" + entries, b"MM\0*\0\0\0\0", itself):
        with little(most_mb=10):
            assert decode(with_app1(flat_jpeg(3), b"Exif\0\0" + tiff), DEFAULTS, NEEDED).bgr.shape == (8, 8, 3)
            block = riff(canvas(8, 6, flags=EXIF) + encoded(".webp", noise(8, 6))[12:] + webp_chunk(b"EXIF", tiff))
            assert decode(block, DEFAULTS, NEEDED).bgr.shape == (6, 8, 3)


def test_a_jpeg_behind_megabytes_of_filling_or_of_segments_that_pillow_takes_apart_costs_little():
    for filling, is_read in (
        (b"\xff" * 15_000_000, False),
        (b"\xff\0" * 7_500_000, False),
        (bytes(15_000_000), False),
        (b"\xff\xfe\0\1" * 3_700_000, False),
        (b"\xff\xd0" * 7_500_000, False),
        (bytes(1_100_000), False),
        (jpeg_segment(0xE2, b"") * 10_000, False),
        (bytes(1_000_000), True),
        (jpeg_segment(0xE2, b"") * 1000, True),
        (jpeg_segment(0xED, b"Photoshop 3.0\0" + b"8BIM\0\0\0\0\0\0\0\0" * 5400) * 230, True),
        (jpeg_segment(0xE1, b"Exif\0\0" + bytes(65_000)) * 230, True),
    ):
        with little(most_mb=70), nullcontext() if is_read else pytest.raises(BadImageError):
            decode(SMALL[:2] + filling + SMALL[2:], DEFAULTS, NEEDED)


def test_exif_in_texts_of_a_png_is_unpacked_once_and_only_so_far():
    """64 MB of zeros in 64 KB, 90 times: the first is unpacked up to a bound, and no other."""
    keyword = b"Raw profile type exif\0"
    text = zlib.compress(b"\nexif\n 9\n" + b"0" * 64_000_000, 9)
    for content in (b"\0" + EIGHT_MB, b"\0" + text):
        data = png(3, 1, 8, 2, ROW, before=png_chunk(b"zTXt", keyword + content) * 90)
        with little():
            assert decode(data, DEFAULTS, NEEDED).bgr.shape == (1, 3, 3)
    with little():
        decode(png(3, 1, 8, 2, ROW, before=png_chunk(b"tEXt", keyword + b"\n" * 5_000_000)), DEFAULTS, NEEDED)


def test_a_jpeg_has_as_many_scans_as_its_size_allows():
    """Each scan costs a pass over all pixels: a file of 16 MB would hold a million."""
    progressive = encoded(".jpg", drawing(24, 17), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    scan = progressive[progressive.rindex(b"\xff\xda") : -2]
    decode(progressive[:-2] + scan * 40 + b"\xff\xd9", DEFAULTS, NEEDED)
    with little(), pytest.raises(BadImageError, match="scans"):
        decode(progressive[:-2] + scan * 100_000 + b"\xff\xd9", DEFAULTS, NEEDED)
    with pytest.raises(BadImageError, match="over 16"):
        decode(progressive[:-2] + scan * 40 + b"\xff\xd9", Limits(16_000_000, 24 * 17), NEEDED)


SMALL = encoded(".jpg", drawing(24, 17))


def test_a_webp_of_a_canvas_that_is_too_large_or_hidden_behind_a_small_one_costs_nothing():
    still = encoded(".webp", drawing(2, 2))[12:]
    many = riff(canvas(2, 2) + webp_chunk(b"JUNK", b"") * 500_000 + still)
    for data in (riff(canvas(1 << 24, 1 << 24) + still), riff(canvas(2, 2) + canvas(7000, 7000) + still), many):
        with little(), suppress(BadImageError, ImageTooLargeError):
            assert decode(data, DEFAULTS, NEEDED).bgr.shape == (2, 2, 3)
