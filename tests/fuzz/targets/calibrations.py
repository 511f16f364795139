"""A calibration: the body of its manifest and, after the first zero byte, the arrays; both are vouched for rightly.

Whoever writes a calibration can write its hashes, so the target does: behind them is what must hold against data. A
file that begins with a zero byte is taken as it is, manifest and arrays parted by the next; one whose arrays begin with
! has each array in an archive made here, so that a change to an array is not stopped by the archive's checksum.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jetsel.policies import catalogue
from jetsel.policies.calibration import Calibration
from jetsel.policies.coding import ARRAYS, MANIFEST, decode, encode
from tests.fuzz.mutations import json_mutation as mutation
from tests.unit.policies.animals import PARTS, animals

MAX_BYTES = 16_384
PLACE = Path("calibrations/pets/1")
PART = b"\n\r!"  # between the arrays of a file whose archive is made here
WORDS = (
    PART,
    b"\x93NUMPY\x01\x00",
    b"'fortran_order': False",
    b"PK\x01\x02",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x06\x07",
)

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run", "seeds"]


def run(data: bytes) -> None:
    """A calibration that is accepted offers policies, and is written as it was read."""
    body, _, arrays = data.removeprefix(b"\0").partition(b"\0")
    if data.startswith(b"\0"):
        decode(body, arrays, PLACE)
        return
    if arrays.startswith(b"!"):
        arrays = _archive(body, arrays.removeprefix(b"!").split(PART))
    calibration = decode(*_vouched(body, arrays), PLACE)
    if {"top1", "top5"} <= calibration.right.keys():  # as the daemon demands
        catalogue(list(calibration.model_sha256), calibration, {})
    again = decode(*_files(calibration), PLACE)
    assert again.points.tobytes() == calibration.points.tobytes()


def _vouched(body: bytes, arrays: bytes) -> tuple[bytes, bytes]:
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = None
    if isinstance(plain, dict) and "arrays_sha256" in plain:
        body = msgspec.json.encode(
            {**plain, "arrays_sha256": hashlib.sha256(arrays).hexdigest(), "arrays_bytes": len(arrays)}
        )
    digest = hashlib.sha256(body).hexdigest().encode()
    version = b"3" if isinstance(plain, dict) and "parts" in plain else b"2"
    return b'{"format":"jetsel-calibration","version":%s,"sha256":"%s","body":%s}' % (version, digest, body), arrays


def _archive(body: bytes, members: list[bytes]) -> bytes:
    try:
        names = list(msgspec.json.decode(body)["arrays"])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        names = []
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in zip(dict.fromkeys(map(str, names)), members, strict=False):
            archive.writestr(zipfile.ZipInfo(f"{name[:60]}.npy".replace("\0", "") or "x"), content)
    return file.getvalue()


def _files(calibration: Calibration) -> tuple[bytes, bytes]:
    files = encode(calibration)
    return files[MANIFEST], files[ARRAYS]


def seeds() -> Iterator[bytes]:
    for calibration in (animals(), msgspec.structs.replace(animals(), parts=PARTS, labels_from="large")):
        manifest, arrays = _files(calibration)
        body = msgspec.json.encode(msgspec.json.decode(manifest)["body"])
        yield b"\0" + manifest + b"\0" + arrays
        yield body + b"\0" + arrays
        with zipfile.ZipFile(io.BytesIO(arrays)) as archive:
            yield body + b"\0!" + PART.join(archive.read(f"{name}.npy") for name in msgspec.json.decode(body)["arrays"])
