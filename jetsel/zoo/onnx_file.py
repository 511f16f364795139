"""Read from an ONNX file, without the onnx package, whether its weights lie in other files.

An ONNX file is a protobuf message (the wire format: protobuf.dev/programming-guides/encoding; field numbers: onnx.proto
of the ONNX project, whose numbers never change).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZE = {_FIXED64: 8, _FIXED32: 4}

_CHILDREN = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
"""By kind of message: the fields on the way to a tensor, and the kind of message that each holds."""

_EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 13, 14, 1  # TensorProto's fields, and DataLocation.EXTERNAL


def has_external_data(path: Path) -> bool:
    """Tell whether any tensor's content lies outside the file; raises ValueError where it is no ONNX file, OSError."""
    with path.open("rb") as handle:
        content = memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    waiting = [("model", content)]
    graphs = 0
    while waiting:
        kind, message = waiting.pop()
        graphs += kind == "graph"
        for number, value in fields(message):
            if kind == "tensor":
                if number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value == _EXTERNAL):
                    return True
            elif number in _CHILDREN[kind] and isinstance(value, memoryview):
                waiting.append((_CHILDREN[kind][number], value))
    if graphs == 0:
        raise ValueError("it holds no graph")
    return False


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field of a protobuf message, nested ones unread; ValueError if it is none."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire_type == _BYTES:
            length, at = _varint(message, at)
        elif wire_type in _FIXED_SIZE:
            length = _FIXED_SIZE[wire_type]
        else:
            raise ValueError(f"a field of unknown wire type {wire_type}")
        if at + length > len(message):
            raise ValueError("it ends in the middle of a field")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at byte `at`, seven bits a byte, low ones first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):  # ten bytes at most
        if at >= len(message):
            raise ValueError("it ends in the middle of a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than ten bytes")
