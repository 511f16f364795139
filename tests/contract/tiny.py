"""A model of one matrix, as an ONNX file: its logits can be worked out by hand."""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

HEIGHT_PX, WIDTH_PX = 2, 3
PIXELS = 3 * HEIGHT_PX * WIDTH_PX
CLASSES = 4


def mean_model(weights: NDArray[np.float32], *, copies: int = 1) -> bytes:
    """Return the file of a model of images of any size: their channels' means times `weights` (3, classes).

    copies: of each image, side by side, that it takes the mean of: its answers are the same, in more time.
    """
    graph = helper.make_graph(
        [
            helper.make_node("Tile", ["images", "copies"], ["wide"]),
            helper.make_node("GlobalAveragePool", ["wide"], ["means"]),
            helper.make_node("Flatten", ["means"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        ],
        "means",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "height", "width"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", weights.shape[1]])],
        [
            numpy_helper.from_array(weights.astype("<f4"), "weights"),
            numpy_helper.from_array(np.array([1, 1, 1, copies], np.int64), "copies"),
        ],
    )
    made = helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", 13)])
    return bytes(made.SerializeToString())


def matrix_model(
    weights: NDArray[np.float32],
    *,
    embedding: bool = True,
    logits_name: str = "logits",
    side_px: int | None = None,
    batch: int | None = None,
    is_half: bool = False,
    step: float | None = None,
) -> bytes:
    """Return the file of a model whose logits are its flattened input times `weights` (PIXELS, classes).

    The flattened input is its embedding. side_px: of a square input instead of HEIGHT_PX by WIDTH_PX. batch: images
    that it takes, no more and no fewer; None: any number. is_half: everything in it is float16. step: where given, its
    input is quantised to INT8 by this step first (Q/DQ nodes).
    """
    images: int | str = "n" if batch is None else batch
    height, width = (side_px, side_px) if side_px else (HEIGHT_PX, WIDTH_PX)
    kind = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    tensors = {"weights": weights.astype("<f2" if is_half else "<f4")}
    nodes = []
    if step is not None:
        tensors |= {"step": np.array(step, np.float32), "zero": np.array(0, np.int8)}
        nodes.append(helper.make_node("QuantizeLinear", ["images", "step", "zero"], ["steps"]))
        nodes.append(helper.make_node("DequantizeLinear", ["steps", "step", "zero"], ["rounded"]))
    nodes.append(helper.make_node("Flatten", ["images" if step is None else "rounded"], ["embedding"]))
    nodes.append(helper.make_node("MatMul", ["embedding", "weights"], [logits_name]))
    outputs = {logits_name: weights.shape[1], **({"embedding": weights.shape[0]} if embedding else {})}
    graph = helper.make_graph(
        nodes,
        "matrix",
        [helper.make_tensor_value_info("images", kind, [images, 3, height, width])],
        [helper.make_tensor_value_info(name, kind, [images, size]) for name, size in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    made = helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", 13)])
    return bytes(made.SerializeToString())
