"""Arrays to and from the bytes of an .npz file, without pickle, and bounded by the shapes that the reader expects."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_BYTES = 256 * 2**20  # of all arrays together: 100,000 photographs by 512 float32 values, with room
HEADER_BYTES = 4096  # more than numpy writes before any array of ours
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the two that numpy writes


class Kind(NamedTuple):
    """What one array must be: dtype as in the .npy header, and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The array's size in bytes, in integers that cannot overflow."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


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
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = sorted(member.filename for member in archive.infolist())
            if names != sorted(f"{name}.npy" for name in kinds):
                raise DamagedError(f"its arrays are {', '.join(names)[:200]}; expected {', '.join(kinds)}")
            return {name: _member(archive, name, kind) for name, kind in kinds.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as fault:
        raise DamagedError(f"its arrays cannot be read ({fault})") from fault


def _member(archive: zipfile.ZipFile, name: str, kind: Kind) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in COMPRESSIONS:
        raise DamagedError(f"{name} is compressed in a way that jetsel does not write")
    if not kind.nbytes < info.file_size <= kind.nbytes + HEADER_BYTES:
        raise DamagedError(f"{name} claims {info.file_size} bytes where {kind.dtype} of {kind.shape} was expected")
    with archive.open(info) as stream:
        content = io.BytesIO(stream.read(kind.nbytes + HEADER_BYTES))
    if np.lib.format.read_magic(content) != (1, 0):
        raise DamagedError(f"{name} has an .npy header that jetsel does not write")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(content)
    if shape != kind.shape or fortran_order or dtype != np.dtype(kind.dtype):
        raise DamagedError(f"{name} is {dtype} of {shape} where {kind.dtype} of {kind.shape} was expected")
    values = content.read()
    if len(values) != kind.nbytes:
        raise DamagedError(f"{name} has {len(values)} bytes of values where {kind.nbytes} were expected")
    return np.frombuffer(values, kind.dtype).reshape(kind.shape)
