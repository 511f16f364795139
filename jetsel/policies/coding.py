"""A calibration to and from its two files: a JSON manifest that vouches for itself and for an .npz of arrays."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.errors import CalibrationError
from jetsel.policies import version_2
from jetsel.policies.calibration import Calibration, Facts, verify
from jetsel.policies.kind import Part
from jetsel.policies.registry import KIND
from jetsel.premodel.arrays import MAX_BYTES, DamagedError, Stored, pack, unpack
from jetsel.store import read_bounded, write

FORMAT = "jetsel-calibration"
VERSION = 3
OLDEST = 2  # that is read
MANIFEST, ARRAYS = "manifest.json", "arrays.npz"
MAX_MANIFEST_BYTES = 4 * 2**20
RESTORE = "recalibrate, or put back a whole copy"

_PLAIN = ("minimum", "maximum", "points")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # msgspec raises the last two as they are

Criterion = Annotated[str, Meta(pattern="^[a-z0-9]+$")]  # it names an array in the .npz
ArrayName = Annotated[str, Meta(pattern="^[a-z0-9_.-]+$")]


class Header(Struct, frozen=True):
    """What every version of the manifest begins with, read before anything else is believed."""

    format: str
    version: int


class Envelope(Header, frozen=True, forbid_unknown_fields=True):
    """The manifest: its body as written, and the body's hash, so that an edited or damaged one is noticed."""

    sha256: str
    body: msgspec.Raw


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """What the manifest vouches for. parts: policy -> its facts."""

    arrays_sha256: str
    arrays_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)]
    criteria: tuple[Criterion, ...]
    arrays: dict[ArrayName, Stored]
    facts: dict[str, Any]
    parts: dict[str, dict[str, Any]] = {}


def encode(calibration: Calibration) -> dict[str, bytes]:
    """Return the content of each file by its name. Raises CalibrationError for what `read` would refuse."""
    verify(calibration)
    arrays = _flat(calibration)
    packed = pack(arrays)
    if len(packed) > MAX_BYTES:
        raise CalibrationError(
            f"the calibration takes {len(packed)} bytes; {MAX_BYTES} are allowed: use fewer photographs"
        )
    try:
        body = Body(
            hashlib.sha256(packed).hexdigest(),
            len(packed),
            tuple(calibration.right),
            {name: Stored(array.dtype.str, array.shape) for name, array in arrays.items()},
            {name: getattr(calibration, name) for name in Facts.__struct_fields__},
            {name: msgspec.to_builtins(part.facts) for name, part in calibration.parts.items()},
        )
        written = msgspec.json.format(msgspec.json.encode(body, enc_hook=_plain), indent=1)
    except (TypeError, NotImplementedError) as fault:
        raise CalibrationError(f"the calibration holds what JSON cannot say: {fault}") from fault
    envelope = Envelope(FORMAT, VERSION, hashlib.sha256(written).hexdigest(), msgspec.Raw(written))
    return {MANIFEST: msgspec.json.encode(envelope) + b"\n", ARRAYS: packed}


def _flat(calibration: Calibration) -> dict[str, NDArray[Any]]:
    """Each array as it is stored: tables of yes and no in bytes, those of a policy under its name and a dot."""
    flat: dict[str, NDArray[Any]] = {name: getattr(calibration, name).astype("<f4") for name in _PLAIN}
    flat |= {f"right_{criterion}": table.astype("|u1") for criterion, table in calibration.right.items()}
    for policy, part in calibration.parts.items():
        for name, dtype in KIND[policy].dtypes(part.facts).items():
            flat[f"{policy}.{name}"] = part.arrays[name].astype(dtype)
    return flat


def _plain(value: Any) -> Any:
    """Turn numpy's scalars and arrays, which figures are often made of, into what JSON knows."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__}")


def read(folder: Path) -> Calibration:
    """Read the two files of a calibration; its arrays are read-only. Raises CalibrationError that names the fault."""
    manifest = _read_bounded(folder / MANIFEST, MAX_MANIFEST_BYTES)
    arrays_bytes = _body(manifest, folder / MANIFEST)[1].arrays_bytes
    return decode(manifest, _read_bounded(folder / ARRAYS, arrays_bytes), folder)


def save(calibration: Calibration, folder: Path) -> None:
    """Write the two files into a folder, made where it is not there, to ship a calibration with models.

    Raises OSError, and CalibrationError for what `read` would refuse. What is in use is installed instead.
    """
    files = encode(calibration)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write(folder / name, content)


def decode(manifest: bytes, arrays: bytes, folder: Path) -> Calibration:
    """Read the bytes of the two files as `read` does; folder: what messages call their place."""
    version, body = _body(manifest, folder / MANIFEST)
    if len(arrays) != body.arrays_bytes or hashlib.sha256(arrays).hexdigest() != body.arrays_sha256:
        raise CalibrationError(f"{folder / ARRAYS}: not the arrays that its manifest was written for; {RESTORE}")
    try:
        found = unpack(arrays, body.arrays)
        calibration = _put_together(version, body, found)
    except DamagedError as fault:
        raise CalibrationError(f"{folder / ARRAYS}: {fault}; {RESTORE}") from fault
    except (*_UNREADABLE, LookupError, AttributeError, TypeError) as fault:  # the last three: a strange version 2
        raise _not_understood(folder / MANIFEST, fault) from fault
    try:
        verify(calibration)
    except CalibrationError as fault:
        raise CalibrationError(f"{folder}: {fault}") from fault
    return calibration


def _put_together(version: int, body: Body, found: dict[str, NDArray[Any]]) -> Calibration:
    """Return the calibration; raises DamagedError where an array is missing, of another type, or of no use."""
    facts, parts = body.facts, body.parts
    if version == 2:
        facts, parts = version_2.today(facts, list(body.criteria))
        found = {today: array for name, array in found.items() if (today := version_2.name_today(name)) is not None}
    left = {name: array for name, array in found.items() if "." not in name or name.partition(".")[0] in KIND}

    def taken(name: str, dtype: str) -> NDArray[Any]:
        array = left.pop(name, None)
        if array is None or array.dtype.str != dtype:
            raise DamagedError(
                f"{name} is {'missing' if array is None else array.dtype.str} where {dtype} was expected"
            )
        return array

    plain = {name: taken(name, "<f4") for name in _PLAIN}
    right = {criterion: _fixed(taken(f"right_{criterion}", "|u1") != 0) for criterion in body.criteria}
    fitted = {}
    for policy, kind in KIND.items():  # of a policy that is not there any more, nothing is read
        if policy not in parts:
            continue
        of_policy = msgspec.convert(parts[policy], kind.facts)
        arrays = {name: taken(f"{policy}.{name}", dtype) for name, dtype in kind.dtypes(of_policy).items()}
        fitted[policy] = Part(of_policy, arrays)
    if left:
        raise DamagedError(f"it holds {', '.join(sorted(left))}, which its manifest has no use for")
    known = msgspec.convert(facts, Facts)
    values: dict[str, Any] = {name: getattr(known, name) for name in Facts.__struct_fields__}
    return Calibration(**(values | plain), right=right, parts=fitted)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def identity(folder: Path) -> str:
    """Return the hash by which the manifest vouches for itself and, through itself, for the arrays; hex SHA-256.

    Equal where every byte of the two files' contents is. Raises CalibrationError where the manifest is damaged.
    """
    return _envelope(_read_bounded(folder / MANIFEST, MAX_MANIFEST_BYTES), folder / MANIFEST).sha256


def _body(data: bytes, path: Path) -> tuple[int, Body]:
    try:
        envelope = _envelope(data, path)
        return envelope.version, msgspec.json.decode(envelope.body, type=Body)
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
    if header.version < OLDEST:
        raise CalibrationError(
            f"{path}: of version {header.version}, which this jetsel reads no more: jetsel calibrate PHOTOS"
        )
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
    try:
        return read_bounded(path, limit)
    except FileNotFoundError as fault:
        raise CalibrationError(f"{path}: no such file; recalibrate, or name a calibration's directory") from fault
    except OSError as fault:
        repair = RESTORE if fault.errno == errno.EFBIG else "check its owner and mode"
        raise CalibrationError(f"{path}: cannot be read ({fault.strerror}); {repair}") from fault
