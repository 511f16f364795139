"""Simplify an ONNX graph so that other tools can read it, and count its operations."""

from __future__ import annotations

import copy
import math

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from jetsel.base.errors import ManifestError
from jetsel.zoo.onnx_model import drop_unused_weights, inputs_of


def for_size(model: ModelProto, height_px: int, width_px: int) -> ModelProto:
    """Return a copy for images of this size, with the shape of every tensor inferred.

    Weights of other precision become float32, and padding that depends on the size becomes numbers. Raises
    ManifestError if the graph does not work at this size.
    """
    changed = copy.deepcopy(model)
    _unpack(changed)
    sides = inputs_of(changed)[0].type.tensor_type.shape.dim[2:]
    for side, size in zip(sides, (height_px, width_px), strict=True):
        side.dim_value = size
    del changed.graph.value_info[:]  # may be of another size
    try:
        inferred: ModelProto = shape_inference.infer_shapes(changed, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ManifestError(f"it does not work at {width_px} x {height_px} px: {reason}; leave this size out") from None
    shapes = shapes_of(inferred)
    for node in inferred.graph.node:
        _pad_by_numbers(node, shapes)
    return inferred


def shapes_of(model: ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the known shapes by tensor, weights included; an open dimension counts as 1."""
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    shapes = {
        value.name: tuple(side.dim_value or 1 for side in value.type.tensor_type.shape.dim)
        for value in values
        if value.type.tensor_type.HasField("shape")
    }
    return shapes | {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}


def operations(model: ModelProto) -> int:
    """Return the multiply-accumulates of convolutions and dense layers for one image.

    model: with a fixed size, see `for_size`, and not quantised.
    """
    shapes, total = shapes_of(model), 0
    for node in model.graph.node:
        if node.op_type == "Conv":
            total += math.prod(shapes[node.output[0]][1:]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("Gemm", "MatMul") and node.input[1] in shapes:
            total += math.prod(shapes[node.input[1]])
    return total


def _unpack(model: ModelProto) -> None:
    """Replace weights that pass through Cast or Identity nodes by float32 weights.

    torch's exporter writes equal tensors once, and adds an Identity for each copy.
    """
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in list(graph.node):
        is_float = node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT
        if (is_float or node.op_type == "Identity") and node.input[0] in stored:
            numbers = numpy_helper.to_array(stored[node.input[0]])
            made = numpy_helper.from_array(numbers.astype(np.float32) if is_float else numbers, node.output[0])
            graph.initializer.append(made)
            stored[made.name] = made
            graph.node.remove(node)
    drop_unused_weights(model)


def _pad_by_numbers(node: NodeProto, shapes: dict[str, tuple[int, ...]]) -> None:
    """Replace a convolution's SAME padding by numbers, as ONNX defines it: the output is ceil(input / stride) wide."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type != "Conv" or b"SAME" not in getattr(attributes.get("auto_pad"), "s", b""):
        return
    before, after = [], []
    kernel = shapes[node.input[1]][2:]
    strides = attributes["strides"].ints if "strides" in attributes else [1] * len(kernel)
    dilations = attributes["dilations"].ints if "dilations" in attributes else [1] * len(kernel)
    for side, reach, stride, dilation in zip(shapes[node.input[0]][2:], kernel, strides, dilations, strict=True):
        due = max((math.ceil(side / stride) - 1) * stride + (reach - 1) * dilation + 1 - side, 0)
        small, large = due // 2, due - due // 2
        is_upper = attributes["auto_pad"].s == b"SAME_UPPER"
        before.append(small if is_upper else large)
        after.append(large if is_upper else small)
    node.attribute.remove(attributes["auto_pad"])
    node.attribute.append(helper.make_attribute("pads", [*before, *after]))
