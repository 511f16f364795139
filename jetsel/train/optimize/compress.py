"""Convert an ONNX model to 8-bit or 16-bit numbers without training."""

from __future__ import annotations

import copy
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, load, save

from jetsel.base.errors import CalibrationError
from jetsel.zoo.onnx_model import Step, input_of, put_behind

MOST_SHOWN = 256  # images that determine the ranges


def int8(model: ModelProto, shown: NDArray[np.float32], *, symmetric: bool) -> ModelProto:
    """Return the model in 8 bits as Q/DQ nodes: weights per channel, activations by their ranges on images.

    model: with a fixed input size. shown: preprocessed images, (n, 3, height, width). symmetric: signed activations
    around 0, which TensorRT demands; ONNX Runtime is faster with unsigned ones. Raises CalibrationError if an operator
    cannot be quantised.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    left = iter([{input_of(model): image[None]} for image in shown[:MOST_SHOWN]])
    reader = SimpleNamespace(get_next=lambda: next(left, None))  # gives the quantiser one image at a time
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
        made: ModelProto = load(after)
    if not any(node.op_type == "QuantizeLinear" for node in made.graph.node):
        raise CalibrationError("it has no operator that can be quantised: use another method")
    return made


def fp16(model: ModelProto) -> ModelProto:
    """Return the model in 16 bits; inputs and outputs stay 32 bits wide. Raises CalibrationError if it cannot."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about numbers out of range: answers are compared later
            made = OnnxModel(convert_float_to_float16(_outputs_apart(model), keep_io_types=True))
    except ValueError as error:
        raise CalibrationError(f"it cannot be converted to 16 bits: {error}; use another method") from error
    made.topological_sort()  # the conversion puts the input's cast last
    half: ModelProto = made.model
    return half


def _outputs_apart(model: ModelProto) -> ModelProto:
    """Return a copy in which no node reads an output: the converter casts outputs and would break their readers."""
    made = copy.deepcopy(model)
    for name in [output.name for output in model.graph.output]:
        if any(name in node.input for node in made.graph.node):
            put_behind(made, name, name, [Step("Identity")])
    return made
