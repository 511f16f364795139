"""Arrays to and from the bytes of an .npz file, without pickle, and bounded by the shapes that the reader expects."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_BYTES = 256 * 2**20  # of all arrays together: 100,000 photographs by 512 float32 values, with room
HEADER_BYTES = 4096  # more than numpy writes before any array of ours
DIRECTORY_BYTES = 2**20  # of the archive's list of members, which is read whole: 10,000 arrays, ours has under 100
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the two that numpy writes

_END = struct.Struct("<4s4H2LH")  # of an archive's directory
_ZIP64_LOCATOR_BYTES = 20
_NPY_1_0 = b"\x93NUMPY\x01\x00"


class Kind(NamedTuple):
    """What one array must be: dtype as in the .npy header, and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The array's size in bytes, in integers that cannot overflow."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def header(self) -> str:
        """What numpy writes of such an array, less the padding; compared as text, so that it is never evaluated."""
        return f"{{'descr': {self.dtype!r}, 'fortran_order': False, 'shape': {self.shape!r}, }}"


class DamagedError(Exception):
    """The bytes do not hold exactly the arrays expected; says what is wrong."""


def pack(arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, Kind]) -> bytes:
    """Return a compressed .npz of the arrays, each stored as its kind says. Raises ValueError where a shape differs."""
    stored = {}
    for name, kind in kinds.items():
        stored[name] = np.ascontiguousarray(arrays[name], kind.dtype)
        if stored[name].shape != kind.shape:
            raise ValueError(f"{name} is {stored[name].shape}, not {kind.shape}")
    file = io.BytesIO()
    # numpy's stubs take the names for its own option allow_pickle; none of ours is called so, and none is an object
    np.savez_compressed(file, **stored)  # type: ignore[arg-type,unused-ignore]
    return file.getvalue()


def unpack(data: bytes, kinds: Mapping[str, Kind]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz, read-only.

    Nothing is allocated for a member before its name, compression and size, and then its header, are what `kinds`
    says. Raises DamagedError.
    """
    if sum(kind.nbytes for kind in kinds.values()) > MAX_BYTES:
        raise DamagedError(f"its arrays would take more than {MAX_BYTES} bytes")
    try:
        _bound_the_directory(data)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = sorted(member.filename for member in archive.infolist())
            if names != sorted(f"{name}.npy" for name in kinds):
                raise DamagedError(f"its arrays are {', '.join(names)[:200]}; expected {', '.join(kinds)}")
            return {name: _member(archive, name, kind) for name, kind in kinds.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as fault:
        raise DamagedError(f"its arrays cannot be read ({fault})") from fault


def _bound_the_directory(data: bytes) -> None:
    """Refuse an archive whose directory is too large to be read whole (its end record: APPNOTE.TXT, 4.3.15 and 4.3.16).

    That record must be the last that there is, as numpy writes it, with no comment and no Zip64 one before it.
    """
    end = data[-_END.size :]
    signature, *_, directory_bytes, _, comment_bytes = _END.unpack(end.rjust(_END.size, b"\0"))
    zip64 = data[-_END.size - _ZIP64_LOCATOR_BYTES : -_END.size].startswith(b"PK\x06\x07")
    if signature != b"PK\x05\x06" or comment_bytes or zip64:
        raise DamagedError("its arrays cannot be read (no archive as numpy writes it)")
    if directory_bytes > DIRECTORY_BYTES:
        raise DamagedError(f"its archive lists arrays in {directory_bytes} bytes; at most {DIRECTORY_BYTES} are read")


def _member(archive: zipfile.ZipFile, name: str, kind: Kind) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in COMPRESSIONS:
        raise DamagedError(f"{name} is compressed in a way that jetsel does not write")
    if not kind.nbytes < info.file_size <= kind.nbytes + HEADER_BYTES:
        raise DamagedError(f"{name} claims {info.file_size} bytes where {kind.dtype} of {kind.shape} was expected")
    with archive.open(info) as stream:
        content = io.BytesIO(stream.read(kind.nbytes + HEADER_BYTES))
    if content.read(len(_NPY_1_0)) != _NPY_1_0:
        raise DamagedError(f"{name} has an .npy header that jetsel does not write")
    header = content.read(int.from_bytes(content.read(2), "little")).decode("ascii", "replace").rstrip()
    if header != kind.header:
        raise DamagedError(f"{name} says {header[:200]!r} where {kind.header!r} was expected")
    values = content.read()
    if len(values) != kind.nbytes:
        raise DamagedError(f"{name} has {len(values)} bytes of values where {kind.nbytes} were expected")
    return np.frombuffer(values, kind.dtype).reshape(kind.shape)
