"""A corpus of every class of file that cameras, phones, scanners and programs write, each with what it shows.

Each case is a name, the file, and what is expected: the picture as (height, width, 3) BGR levels, or a pattern of the
error's message. Pictures are what Pillow decodes, turned upright by EXIF alone, or worked out by hand where Pillow is
wrong: it clips 16 bits of grey, and turns by XMP.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageOps, PngImagePlugin

from tests.unit.image.files import (
    canvas,
    drawing,
    encoded,
    interlaced,
    jpeg_segment,
    png,
    png_chunk,
    riff,
    tiff,
    webp_chunk,
    with_app1,
)

Case = tuple[str, bytes, np.ndarray | str]

WIDTH, HEIGHT = 48, 32
BGR = cv2.GaussianBlur(drawing(WIDTH, HEIGHT), (0, 0), 1.5)
PICTURE = Image.fromarray(np.ascontiguousarray(BGR[:, :, ::-1]))
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


def saved(kind: str, image: Image.Image = PICTURE, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def as_pillow_shows(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        upright = ImageOps.exif_transpose(image)
        colours = upright.convert("RGBA") if upright.mode == "P" else upright  # it warns of transparent palettes
        return np.asarray(colours.convert("RGB"))[:, :, ::-1]


def shown(name: str, data: bytes) -> Case:
    return name, data, as_pillow_shows(data)


def corpus() -> Iterator[Case]:
    yield from _jpegs()
    yield from _broken_jpegs()
    yield from _pngs()
    yield from _deep_pngs()
    yield from _described_pngs()
    yield from _webps()


def _jpegs() -> Iterator[Case]:
    yield shown("JPEG, grey", saved("JPEG", PICTURE.convert("L")))
    for sampling, name in enumerate(("4:4:4", "4:2:2", "4:2:0")):
        yield shown(f"JPEG, {name}", saved("JPEG", subsampling=sampling))
    yield shown("JPEG, 4:1:1", encoded(".jpg", BGR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x411111))
    yield shown("JPEG, RGB", saved("JPEG", keep_rgb=True))
    yield shown("JPEG, progressive", saved("JPEG", progressive=True))
    yield shown("JPEG, own tables", saved("JPEG", optimize=True))
    yield shown("JPEG, restart markers", encoded(".jpg", BGR, cv2.IMWRITE_JPEG_RST_INTERVAL, 1))
    yield shown("JPEG without Huffman tables", without(encoded(".jpg", BGR), 0xC4))
    cmyk = saved("JPEG", PICTURE.convert("CMYK"), quality=95)
    yield shown("JPEG, CMYK", cmyk)
    adobe = b"Adobe\0\x64\0\0\0\0"
    assert adobe + b"\0" in cmyk
    yield shown("JPEG, YCCK", cmyk.replace(adobe + b"\0", adobe + b"\2"))
    for orientation in range(1, 9):
        turned = with_app1(saved("JPEG"), b"Exif\0\0" + tiff(orientation, "<>"[orientation % 2]))
        yield shown(f"JPEG, orientation {orientation}", turned)
    xmp = with_app1(saved("JPEG"), b"http://ns.adobe.com/xap/1.0/\0" + XMP)
    yield "JPEG, orientation in XMP", xmp, as_pillow_shows(saved("JPEG"))


def without(jpeg: bytes, code: int) -> bytes:
    """A JPEG without its segments of one kind."""
    while (at := jpeg.find(bytes((0xFF, code)))) >= 0:
        jpeg = jpeg[:at] + jpeg[at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big") :]
    return jpeg


def _broken_jpegs() -> Iterator[Case]:
    turned = with_app1(saved("JPEG", progressive=True), b"Exif\0\0" + tiff(6))
    picture = as_pillow_shows(turned)
    for code, name in ((0xE1, "EXIF"), (0xDB, "DQT"), (0xC2, "SOF"), (0xC4, "DHT"), (0xDA, "SOS")):
        at = turned.index(bytes((0xFF, code)))
        for count in (1, 5, 7, 608, 70_000):
            yield f"JPEG, {count} bytes before {name}", turned[:at] + bytes(count) + turned[at:], picture
    at = turned.index(b"\xff\xdb")
    for name, junk in (
        ("all of 0 to FE between segments", bytes(range(0xFF))),
        ("FF as filling", b"\xff" * 300),
        ("FF 00 between segments", b"\xff\0" * 9),
        ("restart markers between segments", b"\xff\xd0\xff\xd7\xff\x01"),
        ("a comment of length 0", b"\xff\xfe\0\0"),
        ("an empty APP14", b"\xff\xee\0\2"),
        ("a cut APP14", jpeg_segment(0xEE, b"Adobe\0\x64")),
        ("a second EXIF, cut", jpeg_segment(0xE1, b"Exif\0\0MM\0*")),
    ):
        yield f"JPEG, {name}", turned[:at] + junk + turned[at:], picture
    for name, trailer in (
        ("zeros", bytes(999)),
        ("FF", b"\xff" * 99),
        ("text", b"dhav"),
        ("half a JPEG", turned[:300]),
    ):
        yield f"JPEG, {name} after its end", turned + trailer, picture
    scan = turned.rindex(b"\xff\xda")
    yield "JPEG, end missing", turned[:-2], "before its end-of-image marker"
    yield "JPEG, cut in its last scan", turned[: scan + 20], "before its end-of-image marker"
    yield "JPEG, cut in its header", turned[: at + 3], "cut short"


def grey_png(levels: np.ndarray, depth: int, before: bytes = b"") -> bytes:
    bits = (levels[..., np.newaxis] >> np.arange(depth)[::-1]) & 1
    rows = np.packbits(bits.reshape(len(levels), -1).astype(np.uint8), axis=1)
    return png(levels.shape[1], len(levels), depth, 0, b"".join(b"\0" + row.tobytes() for row in rows), before)


def _pngs() -> Iterator[Case]:
    luma = np.asarray(PICTURE.convert("L"))
    for depth in (1, 2, 4, 8):
        levels = luma.astype(int) >> (8 - depth)
        by_hand = np.repeat((levels * (255 // (2**depth - 1)))[..., np.newaxis], 3, axis=2)
        yield f"PNG, grey of {depth} bits", grey_png(levels, depth), by_hand
        yield f"PNG, grey of {depth} bits, tRNS", grey_png(levels, depth, png_chunk(b"tRNS", b"\0\1")), by_hand
        coloured = PICTURE.quantize(2**depth)
        yield shown(f"PNG, palette of {depth} bits", saved("PNG", coloured, bits=depth))
        yield shown(f"PNG, palette of {depth} bits, tRNS", saved("PNG", coloured, bits=depth, transparency=b"\0\x80"))
    for mode in ("RGB", "RGBA", "LA"):
        image = PICTURE.convert(mode)
        if mode != "RGB":
            image.putalpha(Image.linear_gradient("L").resize(image.size))
        yield shown(f"PNG, {mode}", saved("PNG", image))
    yield shown("PNG, RGB, tRNS", saved("PNG", transparency=(40, 60, 80)))
    yield "PNG, interlaced", interlaced(BGR), BGR


def _deep_pngs() -> Iterator[Case]:
    levels = np.linspace(0, 65_535, WIDTH * HEIGHT).astype(int).reshape(HEIGHT, WIDTH)
    grey = np.repeat(np.round(levels / 257)[..., np.newaxis], 3, axis=2)
    yield "PNG, grey of 16 bits", grey_png(levels, 16), grey
    rgb = b"".join(b"\0" + np.repeat(row, 3).astype(">u2").tobytes() for row in levels)
    yield "PNG, RGB of 16 bits", png(WIDTH, HEIGHT, 16, 2, rgb), grey
    rgba = b"".join(b"\0" + np.repeat(row, 4).astype(">u2").tobytes() for row in levels)
    yield "PNG, RGBA of 16 bits", png(WIDTH, HEIGHT, 16, 6, rgba), grey
    for bits in (10, 12, 14):
        shifted = levels >> (16 - bits)
        stated = png_chunk(b"sBIT", bytes((bits,)))
        yield f"PNG, {bits} bits in 16, sBIT", grey_png(shifted, 16, stated), grey
        yield f"PNG, {bits} bits scaled to 16, sBIT", grey_png(shifted << (16 - bits), 16, stated), grey
    night = (levels // 8) & 0xFFF0
    dark = np.repeat(np.round(night / 257)[..., np.newaxis], 3, axis=2)
    yield "PNG, a dark one of 16 bits, sBIT 12", grey_png(night, 16, png_chunk(b"sBIT", b"\x0c")), dark
    yield "PNG, 14 bits in 16", grey_png(levels >> 2, 16), grey / 4
    for bits in (10, 12):
        yield f"PNG, {bits} bits in 16", grey_png(levels >> (16 - bits), 16), "less than a tenth"
    yield "PNG, kelvins in 16 bits", grey_png(29_000 + levels // 20, 16), "29000 to 32276 only"
    yield "PNG, black of 16 bits", grey_png(levels * 0, 16), "less than a tenth"


def raw_profile(name: bytes, block: bytes) -> bytes:
    """EXIF in a text, as ImageMagick writes it."""
    digits = block.hex().encode()
    lines = b"\n".join(digits[at : at + 72] for at in range(0, len(digits), 72))
    text = b"\nexif\n%8d\n%s\n" % (len(block), lines)
    keyword = b"Raw profile type exif\0"
    content = {b"tEXt": text, b"zTXt": b"\0" + zlib.compress(text), b"iTXt": b"\0\0\0\0" + text}[name]
    return png_chunk(name, keyword + content)


def _described_pngs() -> Iterator[Case]:
    plain = saved("PNG")
    for orientation in range(1, 9):
        block = tiff(orientation, "<>"[orientation % 2])
        for name, chunk in (
            ("eXIf", png_chunk(b"eXIf", block)),
            ("zTXt", raw_profile(b"zTXt", b"Exif\0\0" + block)),
            ("tEXt", raw_profile(b"tEXt", b"Exif\0\0" + block)),
            ("iTXt", raw_profile(b"iTXt", block + bytes(300))),
        ):
            yield shown(f"PNG, orientation {orientation} in {name}", plain[:33] + chunk + plain[33:])
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", XMP.decode())
    yield "PNG, orientation in XMP", saved("PNG", pnginfo=text), BGR
    broken = png_chunk(b"tEXt", b"Comment\0half")[:-1] + b"?"
    turned = plain[:33] + broken + png_chunk(b"eXIf", tiff(6)) + plain[33:]
    upright = as_pillow_shows(plain[:33] + png_chunk(b"eXIf", tiff(6)) + plain[33:])
    yield "PNG, wrong checksum of a text", turned, upright
    yield "PNG, wrong checksum of its end", turned[:-1] + b"?", upright
    yield "PNG, bytes after its end", turned + bytes(99), upright
    yield "PNG, end missing", plain[:-12], "before its last chunk"
    yield "PNG, wrong checksum of its pixels", plain.replace(b"IDAT", b"IDAT\0", 1)[: len(plain)], "checksum"


def _webps() -> Iterator[Case]:
    yield shown("WebP, lossy", saved("WEBP", quality=80))
    yield shown("WebP, lossless", saved("WEBP", lossless=True))
    image = PICTURE.convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    yield shown("WebP, lossy, alpha", saved("WEBP", image))
    yield shown("WebP, lossless, alpha", saved("WEBP", image, lossless=True, exact=True))
    still = saved("WEBP", lossless=True)[12:]
    exif = canvas(WIDTH, HEIGHT, flags=8)
    for orientation in range(1, 9):
        chunk = webp_chunk(b"EXIF", b"Exif\0\0" * (orientation % 2) + tiff(orientation, "<>"[orientation % 2]))
        yield shown(f"WebP, orientation {orientation}", riff(exif + still + chunk))
        yield shown(f"WebP, orientation {orientation} before the picture", riff(exif + chunk + still))
    unknown = webp_chunk(b"JUNK", b"odd")
    turned = riff(exif + unknown + still + unknown + webp_chunk(b"EXIF", tiff(6)))
    yield shown("WebP, unknown chunks", turned)
    yield shown("WebP, bytes after its end", turned + b"\0junk")
    odd = turned[:4] + struct.pack("<I", len(turned) - 8 + 1) + turned[8:] + b"\0"
    yield "WebP of an odd length", odd, as_pillow_shows(turned)  # libwebp reads it, Pillow does not
    yield "WebP, orientation in XMP", riff(canvas(WIDTH, HEIGHT, flags=4) + still + webp_chunk(b"XMP ", XMP)), BGR
    yield "WebP, animated", saved("WEBP", save_all=True, append_images=[PICTURE.rotate(90)]), "animated"
    yield "WebP, cut", turned[:-9], "cut short"
