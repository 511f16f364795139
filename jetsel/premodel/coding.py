"""A calibration to and from its two files: a JSON manifest that vouches for itself and for an .npz of arrays."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from jetsel.errors import CalibrationError
from jetsel.premodel.arrays import MAX_BYTES, DamagedError, Kind, pack, unpack
from jetsel.premodel.artefact import Calibration, Facts, verify
from jetsel.premodel.flat import flatten, gather

FORMAT = "jetsel-calibration"
VERSION = 2
MANIFEST, ARRAYS = "manifest.json", "arrays.npz"
MAX_MANIFEST_BYTES = 4 * 2**20
RESTORE = "recalibrate, or put back a whole copy"

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # msgspec raises the last two as they are

Criterion = Annotated[str, Meta(pattern="^[a-z0-9]+$")]  # it names an array in the .npz
ArrayName = Annotated[str, Meta(pattern="^[a-z0-9_]+$")]
Side = Annotated[int, Meta(ge=0, le=MAX_BYTES)]


class Header(Struct, frozen=True):
    """What every version of the manifest begins with, read before anything else is believed."""

    format: str
    version: int


class Envelope(Header, frozen=True, forbid_unknown_fields=True):
    """The manifest: its body as written, and the body's hash, so that an edited or damaged one is noticed."""

    sha256: str
    body: msgspec.Raw


class Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """How one array lies in the file."""

    dtype: Literal["<f8", "<f4", "<f2", "<i4", "<i2", "|u1"]
    shape: Annotated[tuple[Side, ...], Meta(min_length=1, max_length=2)]


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """What the manifest vouches for."""

    arrays_sha256: str
    arrays_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)]
    criteria: tuple[Criterion, ...]
    arrays: dict[ArrayName, Stored]
    facts: Facts


def encode(calibration: Calibration) -> dict[str, bytes]:
    """Return the content of each file by its name. Raises CalibrationError for what `read` would refuse."""
    verify(calibration)
    facts = Facts(**{name: getattr(calibration, name) for name in Facts.__struct_fields__})
    criteria = tuple(calibration.right)
    flat = flatten(calibration)
    arrays = pack({name: array for name, (array, _) in flat.items()}, {name: kind for name, (_, kind) in flat.items()})
    if len(arrays) > MAX_BYTES:
        raise CalibrationError(
            f"the calibration takes {len(arrays)} bytes; {MAX_BYTES} are allowed: use fewer photographs"
        )
    stored = {name: Stored(kind.dtype, kind.shape) for name, (_, kind) in flat.items()}  # type: ignore[arg-type]
    body = Body(hashlib.sha256(arrays).hexdigest(), len(arrays), criteria, stored, facts)
    try:
        written = msgspec.json.format(msgspec.json.encode(body, enc_hook=_plain), indent=1)
    except (TypeError, NotImplementedError) as fault:
        raise CalibrationError(f"the calibration holds what JSON cannot say: {fault}") from fault
    envelope = Envelope(FORMAT, VERSION, hashlib.sha256(written).hexdigest(), msgspec.Raw(written))
    return {MANIFEST: msgspec.json.encode(envelope) + b"\n", ARRAYS: arrays}


def _plain(value: Any) -> Any:
    """Turn numpy's scalars and arrays, which figures are often made of, into what JSON knows."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__}")


def read(folder: Path) -> Calibration:
    """Read the two files of a calibration; its arrays are read-only. Raises CalibrationError that names the fault."""
    body = _body(_read_bounded(folder / MANIFEST, MAX_MANIFEST_BYTES), folder / MANIFEST)
    return _put_together(body, _read_bounded(folder / ARRAYS, body.arrays_bytes), folder)


def decode(manifest: bytes, arrays: bytes, folder: Path) -> Calibration:
    """Read the bytes of the two files as `read` does; folder: what messages call their place."""
    return _put_together(_body(manifest, folder / MANIFEST), arrays, folder)


def _put_together(body: Body, arrays: bytes, folder: Path) -> Calibration:
    if len(arrays) != body.arrays_bytes or hashlib.sha256(arrays).hexdigest() != body.arrays_sha256:
        raise CalibrationError(f"{folder / ARRAYS}: not the arrays that its manifest was written for; {RESTORE}")
    try:
        found = unpack(arrays, {name: Kind(stored.dtype, stored.shape) for name, stored in body.arrays.items()})
        calibration = gather(body.facts, body.criteria, found)
    except DamagedError as fault:
        raise CalibrationError(f"{folder / ARRAYS}: {fault}; {RESTORE}") from fault
    try:
        verify(calibration)
    except CalibrationError as fault:
        raise CalibrationError(f"{folder}: {fault}") from fault
    return calibration


def identity(folder: Path) -> str:
    """Return the hash by which the manifest vouches for itself and, through itself, for the arrays; hex SHA-256.

    Equal where every byte of the two files' contents is. Raises CalibrationError where the manifest is damaged.
    """
    return _envelope(_read_bounded(folder / MANIFEST, MAX_MANIFEST_BYTES), folder / MANIFEST).sha256


def _body(data: bytes, path: Path) -> Body:
    try:
        return msgspec.json.decode(_envelope(data, path).body, type=Body)
    except _UNREADABLE as fault:
        raise _not_understood(path, fault) from fault


def _envelope(data: bytes, path: Path) -> Envelope:
    try:
        header = msgspec.json.decode(data, type=Header)
    except _UNREADABLE as fault:
        raise CalibrationError(f"{path}: not a calibration's manifest, or damaged ({fault}); {RESTORE}") from fault
    if header.format != FORMAT:
        raise CalibrationError(
            f"{path}: of format {header.format[:80]!r}, not {FORMAT!r}; name a calibration's directory"
        )
    if header.version > VERSION:
        raise CalibrationError(
            f"{path}: too new: of version {header.version}, this jetsel reads {VERSION}; update it, or recalibrate"
        )
    if header.version < VERSION:
        raise CalibrationError(f"{path}: of version {header.version}, which this jetsel reads no more; recalibrate")
    try:
        envelope = msgspec.json.decode(data, type=Envelope)
        if hashlib.sha256(envelope.body).hexdigest() != envelope.sha256:
            raise CalibrationError(f"{path}: altered or damaged since it was written; {RESTORE}")
    except _UNREADABLE as fault:
        raise _not_understood(path, fault) from fault
    return envelope


def _not_understood(path: Path, fault: Exception) -> CalibrationError:
    return CalibrationError(f"{path}: cannot be understood ({fault}); {RESTORE}")


def _read_bounded(path: Path, limit: int) -> bytes:
    """Return a file's bytes, at most `limit`. Raises CalibrationError."""
    if not path.is_file():
        raise CalibrationError(f"{path}: no such file; recalibrate, or name a calibration's directory")
    try:
        with path.open("rb") as file:
            data = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
    except OSError as fault:
        raise CalibrationError(f"{path}: cannot be read ({fault.strerror}); check its owner and mode") from fault
    if len(data) > limit:
        raise CalibrationError(f"{path}: larger than the {limit} bytes expected; {RESTORE}")
    return data
