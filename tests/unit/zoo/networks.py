"""ONNX files of other shapes than `matrix_model`, which a model's owner may bring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX

FLOAT, FLOAT16 = 1, 10
WEIGHTS = np.linspace(-1, 1, PIXELS * 3, dtype=np.float32).reshape(PIXELS, 3)


def network(
    *tail: tuple[str, str, str],
    outputs: Sequence[str] = ("scores",),
    sides: Sequence[str | int] = ("n", 3, HEIGHT_PX, WIDTH_PX),
    inputs: Sequence[str] = ("images",),
    elem_type: int = FLOAT,
) -> bytes:
    """Return a file of: images, flattened to `flat`, times WEIGHTS gives `scores` (n, 3), and then `tail`.

    tail: operations of one input: kind, what it reads, what it gives. The shapes of outputs are left open.
    """
    nodes = [helper.make_node("Flatten", ["images"], ["flat"])]
    nodes.append(helper.make_node("MatMul", ["flat", "weights"], ["scores"]))
    nodes += [helper.make_node(kind, [source], [output]) for kind, source, output in tail]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info(name, elem_type, list(sides)) for name in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(WEIGHTS, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    return bytes(model.SerializeToString())
