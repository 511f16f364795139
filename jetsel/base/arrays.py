"""Packs arrays into the bytes of an .npz file and back, without pickle and within bounds."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

MAX_BYTES = 256 * 2**20  # of all arrays together: more than 100,000 images by 512 float32 values

_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, MemoryError, OSError, RuntimeError, ValueError)


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the content of a compressed .npz file with these arrays, by name."""
    file = io.BytesIO()
    # numpy's stubs confuse the keywords with its option allow_pickle; no array has that name, and none holds objects
    np.savez_compressed(file, **{name: np.ascontiguousarray(array) for name, array in arrays.items()})  # type: ignore[arg-type,unused-ignore]
    return file.getvalue()


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the content of an .npz file by name: read-only numbers or booleans in 1 or 2 dimensions.

    Raises ValueError if the file is damaged, holds other arrays or objects, or unpacks to more than MAX_BYTES.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_BYTES:
                raise ValueError(f"the arrays exceed the limit of {MAX_BYTES} bytes")
            return {member.filename.removesuffix(".npy"): _read_array(archive, member) for member in members}
    except _DAMAGES as fault:
        raise ValueError(f"its arrays cannot be read: {fault}") from fault


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one array of an .npz file; raises ValueError unless it has numbers or booleans in 1 or 2 dimensions."""
    with archive.open(member) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise ValueError(f"{member.filename} is {array.dtype} {array.shape}; it must hold numbers in 1 or 2 dimensions")
    array.flags.writeable = False
    return array
