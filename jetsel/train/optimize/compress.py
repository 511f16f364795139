"""Prepare a model's graph for one size of images, and convert it to 8-bit or 16-bit numbers."""

from __future__ import annotations

import copy
import math
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, load, numpy_helper, save, shape_inference

from jetsel.base.errors import CalibrationError, ManifestError
from jetsel.zoo.onnx_model import Step, drop_unused_weights, inputs_of, put_behind

MOST_SHOWN = 256  # images that determine the ranges of activations


def with_fixed_size(model: ModelProto, height_px: int, width_px: int) -> ModelProto:
    """Return a copy of a model for images of this size alone, with the shape of every tensor inferred.

    Weights of other precision become float32, and padding that depends on the size becomes numbers. Raises
    ManifestError if the graph does not work at this size.
    """
    changed = copy.deepcopy(model)
    _unpack_weights(changed)
    sides = inputs_of(changed)[0].type.tensor_type.shape.dim[2:]
    for side, size in zip(sides, (height_px, width_px), strict=True):
        side.dim_value = size
    del changed.graph.value_info[:]  # may be of another size
    try:
        inferred: ModelProto = shape_inference.infer_shapes(changed, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ManifestError(f"it does not work at {width_px} x {height_px} px: {reason}; leave this size out") from None
    shapes = tensor_shapes(inferred)
    for node in inferred.graph.node:
        _pad_by_numbers(node, shapes)
    return inferred


def tensor_shapes(model: ModelProto) -> dict[str, tuple[int, ...]]:
    """Return tensor -> shape, weights included, as far as shapes are known; a dimension without a size counts as 1."""
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    shapes = {
        value.name: tuple(side.dim_value or 1 for side in value.type.tensor_type.shape.dim)
        for value in values
        if value.type.tensor_type.HasField("shape")
    }
    return shapes | {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}


def _unpack_weights(model: ModelProto) -> None:
    """Replace Cast and Identity nodes whose input is a weight by a weight of their result, in place.

    torch's exporter writes equal tensors once, and adds an Identity for each copy.
    """
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in list(graph.node):
        is_float = node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT
        if (is_float or node.op_type == "Identity") and node.input[0] in stored:
            numbers = numpy_helper.to_array(stored[node.input[0]])
            unpacked = numpy_helper.from_array(numbers.astype(np.float32) if is_float else numbers, node.output[0])
            graph.initializer.append(unpacked)
            stored[unpacked.name] = unpacked
            graph.node.remove(node)
    drop_unused_weights(model)


def _pad_by_numbers(node: NodeProto, shapes: dict[str, tuple[int, ...]]) -> None:
    """Replace a convolution's SAME padding by numbers: ONNX demands an output that is ceil(input / stride) wide."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type != "Conv" or b"SAME" not in getattr(attributes.get("auto_pad"), "s", b""):
        return
    pads_before, pads_after = [], []
    kernel = shapes[node.input[1]][2:]
    strides = attributes["strides"].ints if "strides" in attributes else [1] * len(kernel)
    dilations = attributes["dilations"].ints if "dilations" in attributes else [1] * len(kernel)
    for side, kernel_size, stride, dilation in zip(shapes[node.input[0]][2:], kernel, strides, dilations, strict=True):
        total_padding = max((math.ceil(side / stride) - 1) * stride + (kernel_size - 1) * dilation + 1 - side, 0)
        smaller, larger = total_padding // 2, total_padding - total_padding // 2
        is_upper = attributes["auto_pad"].s == b"SAME_UPPER"
        pads_before.append(smaller if is_upper else larger)
        pads_after.append(larger if is_upper else smaller)
    node.attribute.remove(attributes["auto_pad"])
    node.attribute.append(helper.make_attribute("pads", [*pads_before, *pads_after]))


def int8(model: ModelProto, shown: NDArray[np.float32], *, symmetric: bool) -> ModelProto:
    """Return the model quantised to 8 bits, with QuantizeLinear and DequantizeLinear nodes.

    Weights are scaled per channel, activations by their ranges on images. model: from `with_fixed_size`. shown:
    preprocessed images, (n, 3, height, width). symmetric: signed activations around 0, which TensorRT demands; ONNX
    Runtime is faster with unsigned ones. Raises CalibrationError if an operator cannot be quantised.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    remaining = iter([{inputs_of(model)[0].name: image[None]} for image in shown[:MOST_SHOWN]])
    reader = SimpleNamespace(get_next=lambda: next(remaining, None))  # gives the quantiser one image at a time
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of older quantisers
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        marked = copy.deepcopy(model)  # otherwise the quantiser logs the advice to infer shapes
        marked.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
        save(marked, before)
        try:
            quantize_static(
                before,
                after,
                reader,
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": True},
            )
        except Exception as error:  # onnxruntime's quantiser raises many types
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise CalibrationError(
                f"it cannot be quantised: {reason}; export the model with plain convolutions and dense layers"
            ) from error
        quantised: ModelProto = load(after)
    if not any(node.op_type == "QuantizeLinear" for node in quantised.graph.node):
        raise CalibrationError("it has no operator that can be quantised: use another method")
    return quantised


def fp16(model: ModelProto) -> ModelProto:
    """Return the model in 16-bit floats; inputs and outputs stay float32. Raises CalibrationError if it cannot."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about numbers out of range: answers are compared later
            converted = OnnxModel(convert_float_to_float16(_outputs_apart(model), keep_io_types=True))
    except ValueError as error:
        raise CalibrationError(f"it cannot be converted to 16 bits: {error}; use another method") from error
    converted.topological_sort()  # the conversion puts the input's cast last
    return converted.model  # type: ignore[no-any-return]  # onnxruntime has no types


def _outputs_apart(model: ModelProto) -> ModelProto:
    """Return a copy in which no node reads an output: the converter casts outputs and would break their readers."""
    changed = copy.deepcopy(model)
    for name in [output.name for output in model.graph.output]:
        if any(name in node.input for node in changed.graph.node):
            put_behind(changed, name, name, [Step("Identity")])
    return changed
