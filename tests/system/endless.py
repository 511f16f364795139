"""A model that never comes back from some photographs: an ONNX Loop whose trip count depends on the brightest pixel."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from tests.system.daemons import encoded
from tests.unit.daemon.families import CLASSES, INPUT, SIDE_PX, labels
from tests.unit.zoo.making import field, put_model

# Pixels are scaled so that white is 4.0. The pattern that models are warmed up with ends at 2.0 (engines/base.py).
SCALED = {**INPUT, "mean": [0.0, 0.0, 0.0], "std": [0.25, 0.25, 0.25], "width_px": SIDE_PX, "height_px": SIDE_PX}
BRIGHT = 3.0
FOR_EVER = 2**62

WHITE = encoded(np.full((32, 32, 3), 255, np.uint8), ".png")
DARK = encoded(np.full((32, 32, 3), 60, np.uint8), ".png")

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType


def put_endless_family(folder: Path) -> Path:
    """Write a family of two models, `plain` and the dearer `endless`, which hangs on a white photograph."""
    for place, (name, is_endless) in enumerate((("plain", False), ("endless", True))):
        weights = model(is_endless=is_endless)
        put_model(
            folder,
            labels=labels("hanging"),
            weights=weights,
            name=name,
            family="hanging",
            file=f"{name}.onnx",
            sha256=hashlib.sha256(weights).hexdigest(),
            input=SCALED,
            outputs=["logits"],
            embedding_width=None,
            multiply_accumulates=1000 * (place + 1),
        )
    return folder


def model(*, is_endless: bool) -> bytes:
    """Return the ONNX file: logits are the flattened input times a matrix, plus what the loop counted, which is 0."""
    pixels = 3 * SIDE_PX**2
    matrix = np.random.default_rng(3).normal(size=(pixels, CLASSES)).astype("<f4") / 100
    graph = field(1, _node("Flatten", ["images"], ["flat"])) + field(1, _node("MatMul", ["flat", "matrix"], ["raw"]))
    if is_endless:
        graph += field(1, _node("ReduceMax", ["images"], ["brightest"], _number("keepdims", 0)))
        graph += field(1, _node("Greater", ["brightest", "bright"], ["is_bright"]))
        graph += field(1, _node("Cast", ["is_bright"], ["one"], _number("to", INT64)))
        graph += field(1, _node("Mul", ["one", "for_ever"], ["trips"]))
        graph += field(1, _node("Loop", ["trips", "", "zero"], ["counted"], _graph("body", _body())))
        graph += field(1, _node("Add", ["raw", "counted"], ["logits"]))
        graph += field(5, _tensor("bright", FLOAT, np.array(BRIGHT, "<f4")))
        graph += field(5, _tensor("for_ever", INT64, np.array(FOR_EVER, "<i8")))
        graph += field(5, _tensor("zero", FLOAT, np.array(0, "<f4")))
    else:
        graph += field(1, _node("Identity", ["raw"], ["logits"]))
    graph += field(2, b"hanging") + field(5, _tensor("matrix", FLOAT, matrix))
    graph += field(11, _value("images", FLOAT, [b"n", 3, SIDE_PX, SIDE_PX]))
    graph += field(12, _value("logits", FLOAT, [b"n", CLASSES]))
    return field(1, 7) + field(8, field(2, 13)) + field(7, graph)


def _body() -> bytes:
    """One trip: the number that is carried along stays what it is."""
    graph = field(1, _node("Identity", ["go_on"], ["goes_on"])) + field(1, _node("Abs", ["carried"], ["carries"]))
    graph += field(2, b"trip")
    graph += field(11, _value("trip", INT64, [])) + field(11, _value("go_on", BOOL, []))
    graph += field(11, _value("carried", FLOAT, []))
    return graph + field(12, _value("goes_on", BOOL, [])) + field(12, _value("carries", FLOAT, []))


# The numbers are those of onnx.proto; see tests/contract/tiny.py. AttributeProto: name 1, i 3, g 6, type 20 (INT is 2,
# GRAPH is 5).


def _node(kind: str, inputs: list[str], outputs: list[str], attribute: bytes = b"") -> bytes:
    names = b"".join(field(1, name.encode()) for name in inputs) + b"".join(field(2, name.encode()) for name in outputs)
    return names + field(4, kind.encode()) + (field(5, attribute) if attribute else b"")


def _number(name: str, value: int) -> bytes:
    return field(1, name.encode()) + field(3, value) + field(20, 2)


def _graph(name: str, graph: bytes) -> bytes:
    return field(1, name.encode()) + field(6, graph) + field(20, 5)


def _tensor(name: str, kind: int, values: np.ndarray) -> bytes:
    sizes = b"".join(field(1, size) for size in values.shape)
    return sizes + field(2, kind) + field(8, name.encode()) + field(9, values.tobytes())


def _value(name: str, kind: int, dimensions: list[bytes | int]) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(d, bytes) else 1, d)) for d in dimensions)
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, shape)))
