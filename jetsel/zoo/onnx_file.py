"""Read from an ONNX file, without the onnx package, whether its weights lie in other files.

An ONNX file is a protobuf message (the wire format: protobuf.dev/programming-guides/encoding; field numbers: onnx.proto
of the ONNX project, whose numbers never change).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jetsel.zoo.reading import read_bounded

MAX_BYTES = 2**31 - 1
"""Protobuf's own limit on a message (protobuf.dev/programming-guides/proto-limits): a larger file is no ONNX file."""
MAX_FIELDS = 1_000_000
"""How many fields are walked through: a network of 1,000 operations has 10,000, and a hostile file costs a second."""

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

_EXTERNAL_DATA, _DATA_LOCATION, _DEFAULT = 13, 14, 0  # TensorProto's fields, and DataLocation.DEFAULT
_ORT_FORMAT = b"ORTM"  # ONNX Runtime reads a file with this mark (its ort.fbs) by other rules, whatever its name says
_LARGEST_KEY = 2**32  # a key is of 32 bits: what stands above them, another reader drops and sees another field


def read_file(path: Path) -> bytes:
    """Return the bytes of an ONNX file, in memory of our own: one that is cut short meanwhile would end the process.

    Raises ManifestError where it is larger than any, and OSError.
    """
    return read_bounded(path, MAX_BYTES, "an ONNX file")


def refers_outside(content: bytes) -> bool:
    """Tell whether any tensor's content lies outside these bytes; raises ValueError where they are no ONNX file."""
    if content[4:8] == _ORT_FORMAT:
        raise ValueError("it is of ONNX Runtime's own format")
    waiting = [("model", memoryview(content))]
    graphs = walked = 0
    while waiting:
        kind, message = waiting.pop()
        graphs += kind == "graph"
        for number, value in fields(message):
            walked += 1
            if walked > MAX_FIELDS:
                raise ValueError(f"it has more than {MAX_FIELDS} fields")
            if kind == "tensor":
                if number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value != _DEFAULT):
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
        if number == 0 or key >= _LARGEST_KEY:
            raise ValueError(f"a field of number {number}")
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


def packed(content: memoryview) -> Iterator[int]:
    """Yield whole numbers that stand one after the other; raises ValueError where the last is cut short."""
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


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
