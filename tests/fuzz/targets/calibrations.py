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
import numpy as np

from jetsel.policies import boosted, cascade, catalogue, chain, embedding
from jetsel.policies.calibration import Calibration
from jetsel.policies.cascade import Rung
from jetsel.policies.coding import ARRAYS, MANIFEST, decode, encode
from jetsel.policies.kind import Part, Weighing
from jetsel.premodel import Soundness, Trees
from tests.fuzz.mutations import json_mutation as mutation

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
    for calibration in (_plain(), _whole()):
        manifest, arrays = _files(calibration)
        body = msgspec.json.encode(msgspec.json.decode(manifest)["body"])
        yield b"\0" + manifest + b"\0" + arrays
        yield body + b"\0" + arrays
        with zipfile.ZipFile(io.BytesIO(arrays)) as archive:
            yield body + b"\0!" + PART.join(archive.read(f"{name}.npy") for name in msgspec.json.decode(body)["arrays"])


def _plain() -> Calibration:
    """Three photographs, one feature, two models."""
    return Calibration(
        family="pets",
        labels_sha256="a",
        model_sha256={"xs": "1", "xl": "2"},
        feature_table="f",
        decode_px=64,
        features=("hue1",),
        k=2,
        temperatures={"xs": 1.5, "xl": 1.0},
        costs_ms={"xs": 0.5, "xl": 4.0},
        minimum=np.array([2], np.float32),
        maximum=np.array([12], np.float32),
        points=np.array([[0], [0.5], [1]], np.float32),
        right={name: np.array([[1, 0], [1, 1], [0, 1]], bool) for name in ("top1", "top5")},
        parts={
            "cascade": Part(cascade.Facts({"top1": (Rung("xs", 0.75), Rung("xl", 0.0)), "top5": (Rung("xl", 0.0),)})),
        },
        default_policy={"top1": "cascade", "top5": "single:xl"},
        because="b",
        figures={},
        created="2026-11-20",
    )


def _whole() -> Calibration:
    """The same with all that one may leave out."""
    leaf = Trees(
        feature=np.array([0, 0, 0], np.int16),
        threshold=np.array([0.125, 0, 0]),
        left=np.array([1, 1, 2], np.int32),
        right=np.array([2, 1, 2], np.int32),
        value=np.array([0, -1, 1], np.float32),
        root=np.array([0], np.int32),
        model=np.array([1], np.int16),
        baseline=np.zeros(2, np.float32),
    )
    scale = {"minimum": np.zeros(7, np.float32), "maximum": np.ones(7, np.float32)}
    return msgspec.structs.replace(
        _plain(),
        parts={
            "chain": Part(chain.Facts({"top1": ("xl", "xs")}, {"top1": Soundness(0.5, ((0.25, 0.75),))})),
            "chain-paper": Part(chain.Facts({"top5": ("xs",)}), scale | {"points": np.eye(3, 7, dtype=np.float32)}),
            "cascade-averaged": Part(cascade.Facts({"top5": (Rung("xl", 0.0),)})),
            "embedding": Part(
                embedding.Facts({"top1": Weighing(0.125, 2)}), {"points": np.eye(3, 2, dtype=np.float16)}
            ),
            "boosted": Part(
                boosted.Facts({"top5": Weighing(0.25)}), {f"top5.{k}": array for k, array in leaf._asdict().items()}
            ),
        },
        labels_from="xl",
        energies_mj={"xs": 1.0, "xl": 9.0},
        machine={"board": "drawn"},
    )
