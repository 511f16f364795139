"""ONNX files of other shapes than `matrix_model`, which a model's owner may bring."""

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX

FLOAT, FLOAT16 = 1, 10
WEIGHTS = np.linspace(-1, 1, PIXELS * 3, dtype=np.float32).reshape(PIXELS, 3)
CONSTANTS = {
    "step": np.float32(1 / 256),
    "one": np.float32(1),
    "hundred": np.float32(100),
    "last": np.array([2, 3]),
    "classes": np.array([1]),
    "three": np.array([3]),
    "order": np.array([2, 0, 1]),
    "euler": np.float32(np.e),
    "a_half": np.float32(0.5),
    "none": np.float32(0),
}
ATTRIBUTES = {"Cast": {"to": FLOAT16}, "Concat": {"axis": 1}, "ArgMax": {"axis": 1}, "Gather": {"axis": 1}}


def network(
    *tail: tuple[str, str, str],
    outputs: Sequence[str] = ("scores",),
    sides: Sequence[str | int] = ("n", 3, HEIGHT_PX, WIDTH_PX),
    inputs: Sequence[str] = ("images",),
    elem_type: int = FLOAT,
) -> bytes:
    """Return a file of: images, flattened to `flat`, times WEIGHTS gives `scores` (n, 3), and then `tail`.

    tail: operations: kind, what it reads, with blanks between (CONSTANTS too), what it gives,
    likewise. The shapes of outputs are left open.
    """
    nodes = [helper.make_node("Flatten", ["images"], ["flat"])]
    nodes.append(helper.make_node("MatMul", ["flat", "weights"], ["scores"]))
    nodes += [
        helper.make_node(kind, given.split(), made.split(), **ATTRIBUTES.get(kind, {})) for kind, given, made in tail
    ]
    read = {name for _, given, _ in tail for name in given.split()}
    constants = {"weights": WEIGHTS} | {key: value for key, value in CONSTANTS.items() if key in read}
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info(name, elem_type, list(sides)) for name in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.array(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    return bytes(model.SerializeToString())


def lite_tensors(width: int = 4, classes: int = 5) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of an EfficientNet-Lite0 with few channels, by the names that the published ones have."""
    draw = np.random.default_rng(0)
    made: dict[str, NDArray[np.float32]] = {}

    def convolution(name: str, normalisation: str, *shape: int) -> None:
        made[f"{name}.weight"] = draw.normal(size=shape).astype(np.float32)
        for part, least in (("weight", 0.5), ("bias", -0.5), ("running_mean", -0.5), ("running_var", 0.5)):
            made[f"{normalisation}.{part}"] = draw.uniform(least, least + 1, shape[0]).astype(np.float32)

    convolution("_conv_stem", "_bn0", width, 3, 3, 3)
    kernels = [
        kernel for blocks, kernel in ((1, 3), (2, 3), (2, 5), (3, 3), (3, 5), (4, 5), (1, 3)) for _ in range(blocks)
    ]
    for number, kernel in enumerate(kernels):
        prefix = f"_blocks.{number}."
        if number > 0:
            convolution(f"{prefix}_expand_conv", f"{prefix}_bn0", 2 * width, width, 1, 1)
        inner = width if number == 0 else 2 * width
        convolution(f"{prefix}_depthwise_conv", f"{prefix}_bn1", inner, 1, kernel, kernel)
        convolution(f"{prefix}_project_conv", f"{prefix}_bn2", width, inner, 1, 1)
    convolution("_conv_head", "_bn1", 2 * width, width, 1, 1)
    made["_fc.weight"] = draw.normal(size=(classes, 2 * width)).astype(np.float32)
    made["_fc.bias"] = draw.normal(size=classes).astype(np.float32)
    return made
