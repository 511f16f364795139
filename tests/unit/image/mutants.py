"""Mutations of whole files, mostly of their headers: what networks, cameras and programs leave behind, and more."""

import random
import struct
import zlib
from collections.abc import Iterator

from tests.unit.image.files import jpeg_segment, png_chunk, webp_chunk

Pieces = list[bytes]

JUNK = (
    b"\0",
    b"\xff",
    bytes(5),
    b"\xff\0",
    b"\xff\xff\xff",
    b"\xff\xd0",
    b"\x01",
    b"\xff\x01",
    b"no bytes of ours",
    bytes(608),
)
JPEG_EXTRA = tuple(jpeg_segment(marker, b"Exif\0\0MM") for marker in (0xE0, 0xE1, 0xEE, 0xFE, 0xDD, 0xF0, 0xC8, 0x02))
PNG_EXTRA = tuple(png_chunk(name, b"\0\1") for name in (b"tEXt", b"eXIf", b"sBIT", b"gAMA", b"NEWS", b"PLTE", b"IDAT"))
WEBP_EXTRA = tuple(webp_chunk(name, b"abc") for name in (b"EXIF", b"XMP ", b"ICCP", b"junk", b"ALPH"))


def mutants(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` files, each with one to three changes; the same ones for the same seed."""
    chance = random.Random(seed)
    split, extra = _KINDS[data[:2]]
    for _ in range(count):
        pieces = split(data)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            _change(pieces, extra, chance)
        yield put_right(b"".join(pieces), chance)


def _change(pieces: Pieces, extra: Pieces, chance: random.Random) -> None:
    at = chance.randrange(1, len(pieces))
    piece = pieces[at]
    kind = chance.randrange(8)
    if kind == 0:
        pieces.insert(at, chance.choice(JUNK))
    elif kind == 1:
        pieces.insert(at, chance.choice(extra))
    elif kind == 2:
        pieces.insert(at, piece)
    elif kind == 3 and len(pieces) > 2:
        del pieces[at]
    elif kind == 4 and piece:
        pieces[at] = piece[: chance.randrange(len(piece))]
    elif kind == 5:
        other = chance.randrange(1, len(pieces))
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif piece:
        place = chance.randrange(min(len(piece), 24))  # the header of the piece
        value = chance.choice((0, 1, 0xFF, piece[place] ^ 1 << chance.randrange(8), chance.randrange(256)))
        pieces[at] = piece[:place] + bytes((value,)) + piece[place + 1 :]


def put_right(data: bytes, chance: random.Random) -> bytes:
    """Mostly put right what else hides a change: a PNG's checksums, a WebP's length."""
    if chance.random() < 0.3:
        return data
    if data.startswith(b"\x89PNG"):
        return with_checksums(data)
    if data.startswith(b"RIFF"):
        return data[:4] + struct.pack("<I", max(0, len(data) - 8)) + data[8:]
    return data


def with_checksums(png: bytes) -> bytes:
    whole = bytearray(png)
    at = 8
    while at + 12 <= len(whole):
        end = at + 8 + int.from_bytes(whole[at : at + 4], "big")
        if end + 4 > len(whole):
            break
        whole[end : end + 4] = struct.pack(">I", zlib.crc32(whole[at + 4 : end]))
        at = end + 4
    return bytes(whole)


def jpeg_pieces(data: bytes) -> Pieces:
    """Return the start, each segment, the data of each scan, and the end."""
    pieces, at = [data[:2]], 2
    while at < len(data):
        if data[at] == 0xFF and data[at + 1] not in (0, *range(0xD0, 0xDA)):
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        elif data[at : at + 2] == b"\xff\xd9":
            end = at + 2
        else:
            end = at + 1
            while data[end] != 0xFF or data[end + 1] in (0, *range(0xD0, 0xD8)):
                end += 1
        pieces.append(data[at:end])
        at = end
    return pieces


def _png_pieces(data: bytes) -> Pieces:
    pieces, at = [data[:8]], 8
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        pieces.append(data[at:end])
        at = end
    return pieces


def _webp_pieces(data: bytes) -> Pieces:
    pieces, at = [data[:12]], 12
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + 8 + length + length % 2
        pieces.append(data[at:end])
        at = end
    return pieces


_KINDS = {
    b"\xff\xd8": (jpeg_pieces, JPEG_EXTRA),
    b"\x89P": (_png_pieces, PNG_EXTRA),
    b"RI": (_webp_pieces, WEBP_EXTRA),
}
