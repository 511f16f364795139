"""Read tensors from a checkpoint in torch's legacy format without torch, by an unpickler that accepts only tensors.

The format (torch.serialization._legacy_save): four pickles (a magic number, a version, facts of the machine, the
tensors, which name their storages), a pickled list of those storages, and each storage's numbers, little-endian.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import struct
from collections import OrderedDict
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import ManifestError

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_MOST_TENSORS = 100_000
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_KINDS = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}
_DAMAGED = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


class _Storage:
    """Numbers that tensors are views of; the file holds them after all pickles."""

    def __init__(self, kind: np.dtype[Any], count: int) -> None:
        self.kind, self.count = kind, count
        self.numbers = np.empty(0, kind)


class _Tensor:
    """A view of a storage, with the arguments of torch._utils._rebuild_tensor_v2."""

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any
    ) -> None:
        self.storage, self.offset, self.shape, self.stride = storage, offset, shape, stride

    def array(self) -> NDArray[Any]:
        """Return a copy of the numbers; raises ValueError if the view exceeds its storage."""
        numbers, sides = self.storage.numbers, [*zip(self.shape, self.stride, strict=True)]
        last = self.offset + sum((side - 1) * step for side, step in sides)
        is_within = self.offset >= 0 and last < len(numbers) and math.prod(self.shape) <= len(numbers)
        if not is_within or any(side < 1 or step < 0 for side, step in sides):
            raise ValueError("a tensor is outside of its storage")
        steps = [step * numbers.itemsize for step in self.stride]
        return np.array(np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, steps))


class _Plain(pickle.Unpickler):
    """Unpickles numbers, texts, lists and the like, and refuses every class and function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Raise UnpicklingError."""
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is not a tensor")


class _Tensors(pickle.Unpickler):
    """Unpickles tensors by name, and refuses every other class and function without importing it."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement for a name of torch that tensors need; raises UnpicklingError for any other."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in _KINDS:
            return _KINDS[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is not a tensor")

    def persistent_load(self, pid: Any) -> _Storage:
        """Return the storage with this key, the same object each time."""
        _, kind, key, _, count, _ = pid
        return self.storages.setdefault(key, _Storage(np.dtype(kind), count))


def tensors_in(content: bytes, name: str) -> dict[str, NDArray[Any]]:
    """Return the tensors, float32 or int64, by name. content: of the file. name: of the file, for messages.

    The file's size bounds the memory that it can allocate. Raises ManifestError if it is no such file.
    """
    file = io.BytesIO(content)
    try:
        if _load(_Plain(file), file) != _MAGIC or _load(_Plain(file), file) != _VERSION:
            raise ValueError("it does not begin like a checkpoint")
        _load(_Plain(file), file)
        unpickler = _Tensors(file)
        tensors = _load(unpickler, file)
        if not isinstance(tensors, OrderedDict) or not 0 < len(tensors) <= _MOST_TENSORS:
            raise ValueError("it holds no tensors by name")
        if not all(isinstance(key, str) and isinstance(one, _Tensor) for key, one in tensors.items()):
            raise ValueError("it holds other things than tensors")
        for key in _load(_Plain(file), file):
            _fill(unpickler.storages[key], file)
        return {key: one.array() for key, one in tensors.items()}
    except (*_DAMAGED, MemoryError, struct.error) as error:
        message = f"{name}: not a checkpoint of torch's legacy format: {error}; download it again"
        raise ManifestError(message) from error


def _load(unpickler: pickle.Unpickler, file: io.BytesIO) -> Any:
    """Return the next pickle's object; raises ValueError if a memo index exceeds the pickle's bytes.

    The unpickler allocates a memo table as long as the largest index.
    """
    begin = file.tell()
    numbers = [int(arg or 0) for opcode, arg, _ in pickletools.genops(file) if opcode.name in _PUTS]
    if max(numbers, default=0) > file.tell() - begin:
        raise ValueError("its pickle table is larger than the file")
    file.seek(begin)
    return unpickler.load()


def _fill(storage: _Storage, file: io.BytesIO) -> None:
    (count,) = struct.unpack("<q", file.read(8))
    if count != storage.count:
        raise ValueError(f"a storage has {count} numbers instead of {storage.count}")
    numbers = file.read(count * storage.kind.itemsize)
    storage.numbers = np.frombuffer(numbers, storage.kind, count)
