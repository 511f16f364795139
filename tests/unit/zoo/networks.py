"""ONNX files of other shapes than `matrix_model`, which a model's owner may bring; written byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX
from tests.unit.zoo.making import field

Sides = Sequence[bytes | int]
FLOAT, FLOAT16 = 1, 10
WEIGHTS = np.linspace(-1, 1, PIXELS * 3, dtype=np.float32).reshape(PIXELS, 3)


def network(
    *tail: tuple[str, str, str],
    outputs: Sequence[str] = ("scores",),
    sides: Sides = (b"n", 3, HEIGHT_PX, WIDTH_PX),
    inputs: Sequence[str] = ("images",),
    elem_type: int = FLOAT,
) -> bytes:
    """Return a file of: images, flattened to `flat`, times WEIGHTS gives `scores` (n, 3), and then `tail`.

    tail: operations of one input: kind, what it reads, what it gives. The shapes of outputs are left open.
    """
    nodes = [("Flatten", ["images"], "flat"), ("MatMul", ["flat", "weights"], "scores")]
    nodes += [(kind, [source], output) for kind, source, output in tail]
    graph = b"".join(field(1, _node(*node)) for node in nodes)
    tensor = field(1, PIXELS) + field(1, 3) + field(2, FLOAT) + field(8, b"weights") + field(9, WEIGHTS.tobytes())
    graph += field(2, b"network") + field(5, tensor)
    graph += b"".join(field(11, _value(name, sides, elem_type)) for name in inputs)
    graph += b"".join(field(12, field(1, name.encode())) for name in outputs)
    return field(1, 7) + field(8, field(2, 13)) + field(7, graph)


def _node(kind: str, inputs: list[str], output: str) -> bytes:
    return b"".join(field(1, name.encode()) for name in inputs) + field(2, output.encode()) + field(4, kind.encode())


def _value(name: str, sides: Sides, elem_type: int) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(side, bytes) else 1, side)) for side in sides)
    return field(1, name.encode()) + field(2, field(1, field(1, elem_type) + field(2, shape)))
