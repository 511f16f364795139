"""Arrays to and from the bytes of an .npz file, without pickle, and bounded by the shapes that the reader expects."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

MAX_BYTES = 256 * 2**20  # of all arrays together: 100,000 photographs by 512 float32 values, with room
HEADER_BYTES = 4096  # more than numpy writes before any array of ours
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the two that numpy writes

_NPY_1_0 = b"\x93NUMPY\x01\x00"

Side = Annotated[int, Meta(ge=0, le=MAX_BYTES)]


class Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """How one array lies in the file: dtype as in the .npy header, and shape."""

    dtype: Literal["<f8", "<f4", "<f2", "<i4", "<i2", "|u1"]
    shape: Annotated[tuple[Side, ...], Meta(min_length=1, max_length=2)]

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


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a compressed .npz of the arrays."""
    file = io.BytesIO()
    # numpy's stubs take the names for its own option allow_pickle; none of ours is called so, and none is an object
    np.savez_compressed(file, **{name: np.ascontiguousarray(a) for name, a in arrays.items()})  # type: ignore[arg-type,unused-ignore]
    return file.getvalue()


def unpack(data: bytes, expected: Mapping[str, Stored]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz, read-only.

    Nothing is allocated for a member before its name and size, and then its header, are what is expected. Raises
    DamagedError.
    """
    if sum(stored.nbytes for stored in expected.values()) > MAX_BYTES:
        raise DamagedError(f"its arrays would take more than {MAX_BYTES} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = sorted(member.filename for member in archive.infolist())
            if names != sorted(f"{name}.npy" for name in expected):
                raise DamagedError(f"its arrays are {', '.join(names)[:200]}; expected {', '.join(expected)}")
            return {name: _member(archive, name, stored) for name, stored in expected.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as fault:
        raise DamagedError(f"its arrays cannot be read ({fault})") from fault


def _member(archive: zipfile.ZipFile, name: str, stored: Stored) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in COMPRESSIONS:
        raise DamagedError(f"{name} is compressed in a way that jetsel does not write")
    if not stored.nbytes < info.file_size <= stored.nbytes + HEADER_BYTES:
        raise DamagedError(f"{name} claims {info.file_size} bytes where {stored.dtype} of {stored.shape} was expected")
    with archive.open(info) as stream:
        content = io.BytesIO(stream.read(stored.nbytes + HEADER_BYTES))
    if content.read(len(_NPY_1_0)) != _NPY_1_0:
        raise DamagedError(f"{name} has an .npy header that jetsel does not write")
    header = content.read(int.from_bytes(content.read(2), "little")).decode("ascii", "replace").rstrip()
    if header != stored.header:
        raise DamagedError(f"{name} says {header[:200]!r} where {stored.header!r} was expected")
    values = content.read()
    if len(values) != stored.nbytes:
        raise DamagedError(f"{name} has {len(values)} bytes of values where {stored.nbytes} were expected")
    return np.frombuffer(values, stored.dtype).reshape(stored.shape)
