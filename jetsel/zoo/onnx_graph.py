"""Read from an ONNX file, without the onnx package, what it takes, answers and computes; and add an output to one.

Field numbers are those of onnx.proto of the ONNX project, which never change. A protobuf message that stands twice in
a file is merged when it is read, lists one after the other, so that a graph grows by what is appended to the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jetsel.zoo.onnx_file import fields, packed, read_file

FLOAT = 1  # TensorProto.DataType of 32-bit numbers
_WEIGHTS = {1, 2, 3, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}  # numbers with a fraction, and 4- and 8-bit ones
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_NODE, _INITIALIZER, _INPUT, _OUTPUT = 1, 5, 11, 12  # of GraphProto
_SUBGRAPHS = {6, 11}  # of AttributeProto
_MAX_SIDES = 64  # of a tensor; NumPy has no more either
_MAX_NUMBERS = 1 << 40  # in a tensor: more than a file of 2 GiB holds, of any kind


@dataclass(frozen=True)
class Value:
    """An input or an output. elem_type: TensorProto.DataType. shape: None for a side that the file leaves open."""

    name: str
    elem_type: int | None
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Node:
    """One operation of the main graph. has_graphs: whether it holds graphs of its own, as If and Loop do."""

    kind: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    has_graphs: bool


@dataclass
class Graph:
    """What a file holds, weights' contents left out. initializers: name -> elem_type and dimensions."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    initializers: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    has_functions: bool = False

    @property
    def parameters(self) -> int:
        """Numbers in the weights; shapes and indices, which are whole numbers, are none."""
        return sum(math.prod(dims) for elem_type, dims in self.initializers.values() if elem_type in _WEIGHTS)


def read_graph(path: Path) -> Graph:
    """Read a file's main graph, after store.check_whole; raises as onnx_file.read_file and `graph_in` do."""
    return graph_in(read_file(path))


def graph_in(content: bytes) -> Graph:
    """Read the main graph in a file's bytes; raises ValueError where they are no ONNX file."""
    graph, found = Graph(), False
    for number, value in fields(memoryview(content)):
        if number == _MODEL_GRAPH and isinstance(value, memoryview):
            found = True
            _add(graph, value)
        graph.has_functions |= number == _MODEL_FUNCTION
    if not found:
        raise ValueError("it holds no graph")
    # Before version 4 of the format, weights stood among the inputs too.
    graph.inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    return graph


def with_outputs(names: Iterable[str]) -> bytes:
    """Return what, appended to a file, makes these tensors, whatever they are, outputs of its graph."""
    return _message(_MODEL_GRAPH, b"".join(_message(_OUTPUT, _message(1, name.encode())) for name in names))


def with_output(name: str) -> bytes:
    """Return what, appended to a file, makes its tensor `name`, (n, classes) float32, an output."""
    return _message(_MODEL_GRAPH, _message(_OUTPUT, _table(name)))


def with_alias(existing: str, name: str) -> bytes:
    """Return what, appended to a file, makes its tensor `existing`, (n, classes) float32, an output called `name`."""
    node = _message(1, existing.encode()) + _message(2, name.encode()) + _message(4, b"Identity")
    return _message(_MODEL_GRAPH, _message(_NODE, node) + _message(_OUTPUT, _table(name)))


def _table(name: str) -> bytes:
    """The ValueInfoProto of a tensor (n, classes) of float32."""
    sides = _message(1, _message(2, b"n")) + _message(1, _message(2, b"classes"))
    return _message(1, name.encode()) + _message(2, _message(1, _number(1, FLOAT) + _message(2, sides)))


def _add(graph: Graph, message: memoryview) -> None:
    for number, value in fields(message):
        if not isinstance(value, memoryview):
            continue
        if number == _NODE:
            graph.nodes.append(_node(value))
        elif number == _INITIALIZER:
            name, elem_type, dims = _tensor(value)
            graph.initializers[name] = (elem_type, dims)
        elif number == _INPUT:
            graph.inputs.append(_value(value))
        elif number == _OUTPUT:
            graph.outputs.append(_value(value))


def _node(message: memoryview) -> Node:
    """NodeProto: input 1, output 2, op_type 4, attribute 5, domain 7."""
    texts: dict[int, list[str]] = {1: [], 2: [], 4: [""], 7: [""]}
    has_graphs = False
    for number, value in fields(message):
        if number in texts and isinstance(value, memoryview):
            texts[number].append(_text(value))
        elif number == 5 and isinstance(value, memoryview):
            has_graphs |= any(inner in _SUBGRAPHS for inner, _ in fields(value))
    return Node(texts[4][-1], texts[7][-1], tuple(texts[1]), tuple(texts[2]), has_graphs)


def _tensor(message: memoryview) -> tuple[str, int, tuple[int, ...]]:
    """TensorProto: dims 1, which may be packed, data_type 2, name 8."""
    name, elem_type = "", 0
    dims: list[int] = []
    for number, value in fields(message):
        if number == 1:
            dims += [value] if isinstance(value, int) else itertools.islice(packed(value), _MAX_SIDES + 1)
            if len(dims) > _MAX_SIDES:
                raise ValueError(f"a tensor of more than {_MAX_SIDES} sides")
        elif number == 2 and isinstance(value, int):
            elem_type = value
        elif number == 8 and isinstance(value, memoryview):
            name = _text(value)
    if math.prod(dims) > _MAX_NUMBERS:
        raise ValueError("a tensor of more numbers than any file holds")
    return name, elem_type, tuple(dims)


def _value(message: memoryview) -> Value:
    """ValueInfoProto: name 1, type 2; TypeProto.tensor_type 1: elem_type 1, shape 2; TensorShapeProto.dim 1."""
    name = _text(_last(message, 1) or memoryview(b""))
    tensor = _last(_last(message, 2) or memoryview(b""), 1) or memoryview(b"")
    elem_type = next((value for number, value in fields(tensor) if number == 1 and isinstance(value, int)), None)
    shape = _last(tensor, 2)
    if shape is None:
        return Value(name, elem_type, None)
    dims = [value for number, value in fields(shape) if number == 1 and isinstance(value, memoryview)]
    return Value(name, elem_type, tuple(_side(dim) for dim in dims))


def _side(message: memoryview) -> int | None:
    """TensorShapeProto.Dimension: dim_value 1; a name or nothing where the side is open. 0 and less mean open, too."""
    value = next((value for number, value in fields(message) if number == 1 and isinstance(value, int)), None)
    return value if value is not None and 0 < value < 1 << 31 else None


def _last(message: memoryview, wanted: int) -> memoryview | None:
    found = None
    for number, value in fields(message):
        if number == wanted and isinstance(value, memoryview):
            found = value
    return found


def _text(content: memoryview) -> str:
    try:
        return bytes(content).decode()
    except UnicodeDecodeError:
        raise ValueError("a name that is not UTF-8") from None


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value)


def _message(field_number: int, content: bytes) -> bytes:
    return _varint(field_number << 3 | 2) + _varint(len(content)) + content
