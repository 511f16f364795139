"""A calibration: the body of its manifest and, after the first zero byte, the arrays; both are vouched for rightly.

Whoever writes a calibration can write its hashes, so the target does: behind them is what must hold against data. A
file that begins with a zero byte is taken as it is, manifest and arrays parted by the next; one whose arrays begin with
! has each array, after its name and =, in an archive made here, so that a change to one is not stopped by a checksum.
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
        arrays = _archive(arrays.removeprefix(b"!").split(PART))
    calibration = decode(*_vouched(body, arrays), PLACE)
    if {"top1", "top5"} <= calibration.right.keys():  # as the daemon demands
        catalogue(list(calibration.model_sha256), calibration, {})
    again = decode(*_files(calibration), PLACE)
    assert again.points.tobytes() == calibration.points.tobytes()


def _vouched(body: bytes, arrays: bytes) -> tuple[bytes, bytes]:
    digest = hashlib.sha256(body + arrays).hexdigest().encode()
    return b'{"format":"jetsel-calibration","version":3,"sha256":"%s","body":%s}' % (digest, body), arrays


def _archive(members: list[bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member in members:
            name, _, content = member.partition(b"=")
            name = name[:60].replace(b"\0", b"") or b"x"
            archive.writestr(zipfile.ZipInfo(name.decode("ascii", "replace")), content)
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
            yield body + b"\0!" + PART.join(name.encode() + b"=" + archive.read(name) for name in archive.namelist())
