"""A model of one matrix, written as an ONNX file byte by byte: its logits can be worked out by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.unit.zoo.making import field

HEIGHT_PX, WIDTH_PX = 2, 3
PIXELS = 3 * HEIGHT_PX * WIDTH_PX
CLASSES = 4

# The numbers are those of onnx.proto. NodeProto: input 1, output 2, op_type 4. TensorProto: dims 1, data_type 2 (1 is
# float), name 8, raw_data 9. ValueInfoProto: name 1, type 2; TypeProto.tensor_type 1: elem_type 1, shape 2; of its dims
# (1), dim_value 1, dim_param 2. GraphProto: node 1, name 2, initializer 5, input 11, output 12. ModelProto: ir_version
# 1, opset_import 8, graph 7.


def matrix_model(
    weights: NDArray[np.float32],
    *,
    embedding: bool = True,
    logits_name: str = "logits",
    side_px: int | None = None,
    batch: int | None = None,
) -> bytes:
    """Return the file of a model whose logits are its flattened input times `weights` (PIXELS, classes).

    The flattened input is its embedding. side_px: of a square input instead of HEIGHT_PX by WIDTH_PX.
    batch: images that it takes, no more and no fewer; None: any number.
    """
    images = b"n" if batch is None else batch
    height, width = (side_px, side_px) if side_px else (HEIGHT_PX, WIDTH_PX)
    pixels, classes = weights.shape
    tensor = field(1, pixels) + field(1, classes) + field(2, 1) + field(8, b"weights")
    tensor += field(9, weights.astype("<f4").tobytes())
    graph = field(1, _node(b"Flatten", [b"images"], b"embedding"))
    graph += field(1, _node(b"MatMul", [b"embedding", b"weights"], logits_name.encode()))
    graph += field(2, b"matrix") + field(5, tensor)
    graph += field(11, _value(b"images", [images, 3, height, width]))
    graph += field(12, _value(logits_name.encode(), [images, classes]))
    if embedding:
        graph += field(12, _value(b"embedding", [images, pixels]))
    return field(1, 7) + field(8, field(2, 13)) + field(7, graph)


def _node(kind: bytes, inputs: list[bytes], output: bytes) -> bytes:
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def _value(name: bytes, dimensions: list[bytes | int]) -> bytes:
    shape = b"".join(field(1, field(2 if isinstance(d, bytes) else 1, d)) for d in dimensions)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
