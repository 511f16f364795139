"""Reads and writes a calibration's two files, a JSON manifest and an .npz of arrays, with one hash over both."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.artefact.calibration import FACTS_TYPES, Calibration, CalibrationFacts, PolicyPart, verify
from jetsel.base.arrays import MAX_BYTES, pack, unpack
from jetsel.base.errors import CalibrationError
from jetsel.base.files import read_bounded, write

FORMAT = "jetsel-calibration"
VERSION = 8
MANIFEST, ARRAYS = "manifest.json", "arrays.npz"
MAX_MANIFEST_BYTES = 4 * 2**20
RESTORE = "recalibrate, or put back a whole copy"

_UNREADABLE = (msgspec.MsgspecError, ValueError, LookupError, RecursionError)


class ManifestHeader(Struct, frozen=True):
    """Start of the manifest in every version, read first to recognise format and version."""

    format: str
    version: int


class Envelope(ManifestHeader, frozen=True, forbid_unknown_fields=True):
    """The manifest. sha256: hash of `body` as written followed by the file of arrays, to detect damage."""

    sha256: str
    body: msgspec.Raw


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a calibration without its arrays. parts: policy -> PolicyPart.facts."""

    facts: CalibrationFacts
    parts: dict[str, Any]


def encode(calibration: Calibration) -> dict[str, bytes]:
    """Return the content of each file by its name. Raises CalibrationError if the calibration contradicts itself."""
    verify(calibration)
    parts = calibration.parts
    packed = pack({f"{policy}.{name}": array for policy, part in parts.items() for name, array in part.arrays.items()})
    content = Body(calibration.facts, {policy: part.facts for policy, part in parts.items()})
    compact = msgspec.json.encode(content, enc_hook=lambda value: value.tolist())  # figures often are numpy scalars
    body = msgspec.json.format(compact, indent=1)
    envelope = Envelope(FORMAT, VERSION, _digest(body, packed), msgspec.Raw(body))
    return {MANIFEST: msgspec.json.encode(envelope) + b"\n", ARRAYS: packed}


def _digest(body: bytes | msgspec.Raw, arrays: bytes) -> str:
    """Return the SHA-256 of a manifest's body followed by the file of arrays, in hex."""
    return hashlib.sha256(bytes(body) + arrays).hexdigest()


def save(calibration: Calibration, folder: Path) -> None:
    """Write the two files into a folder, to ship a calibration with models; create the folder if needed.

    Raises OSError, and the CalibrationError of `encode`. `install` puts a calibration into use instead.
    """
    files = encode(calibration)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write(folder / name, content)


def read(folder: Path) -> Calibration:
    """Return the calibration in a folder, with read-only arrays. Raises CalibrationError with fault and repair."""
    envelope, arrays = _envelope(folder), _read_bounded(folder / ARRAYS, MAX_BYTES)
    if _digest(envelope.body, arrays) != envelope.sha256:
        raise CalibrationError(f"{folder}: altered or damaged since it was written; {RESTORE}")
    try:
        calibration = _assemble(msgspec.json.decode(envelope.body, type=Body), unpack(arrays))
        verify(calibration)
    except CalibrationError as fault:
        raise CalibrationError(f"{folder}: {fault}") from fault
    except _UNREADABLE as fault:
        raise CalibrationError(f"{folder}: cannot be understood ({fault}); {RESTORE}") from fault
    return calibration


def read_identity(folder: Path) -> str:
    """Return the SHA-256 of a calibration, in hex, from its manifest. Raises CalibrationError if that is unreadable."""
    return _envelope(folder).sha256


def _envelope(folder: Path) -> Envelope:
    """Return the manifest in a folder. Raises CalibrationError if it is none, or of another version."""
    path = folder / MANIFEST
    data = _read_bounded(path, MAX_MANIFEST_BYTES)
    try:
        header = msgspec.json.decode(data, type=ManifestHeader)
        if header.format != FORMAT:
            raise CalibrationError(
                f"{path}: of format {header.format[:80]!r}, not {FORMAT!r}; name a calibration's directory"
            )
        if header.version != VERSION:
            repair = "update jetsel, or recalibrate" if header.version > VERSION else "jetsel calibrate IMAGES"
            raise CalibrationError(f"{path}: has version {header.version}, and this jetsel reads {VERSION}: {repair}")
        return msgspec.json.decode(data, type=Envelope)
    except _UNREADABLE as fault:
        raise CalibrationError(f"{path}: not a calibration's manifest, or damaged ({fault}); {RESTORE}") from fault


def _assemble(body: Body, arrays: dict[str, NDArray[Any]]) -> Calibration:
    """Return the calibration. Raises CalibrationError for a policy that this version does not have."""
    unknown = sorted(body.parts.keys() - FACTS_TYPES.keys())
    if unknown:
        repair = "run jetsel calibrate IMAGES, or update jetsel"
        raise CalibrationError(f"it has {', '.join(unknown)}, which this jetsel does not know: {repair}")
    groups: dict[str, dict[str, NDArray[Any]]] = {}  # policy -> its arrays, by the name after the first dot
    for name, array in arrays.items():
        group, _, member = name.partition(".")
        groups.setdefault(group, {})[member] = array
    return Calibration(
        **msgspec.structs.asdict(body.facts),
        parts={
            policy: PolicyPart(msgspec.convert(facts, FACTS_TYPES[policy]), groups.get(policy, {}))
            for policy, facts in body.parts.items()
        },
    )


def _read_bounded(path: Path, limit: int) -> bytes:
    """Return a file's bytes, at most `limit`. Raises CalibrationError."""
    try:
        return read_bounded(path, limit)
    except OSError as fault:
        repairs = {errno.EFBIG: RESTORE, errno.ENOENT: "recalibrate, or name a calibration's directory"}
        repair = repairs.get(fault.errno or 0, "check its owner and mode")
        raise CalibrationError(f"{path}: cannot be read ({fault.strerror}); {repair}") from fault
