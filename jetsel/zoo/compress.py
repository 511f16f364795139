"""Convert an ONNX model to 8-bit or 16-bit numbers without training."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError, pip_install
from jetsel.zoo.onnx_model import input_of

if TYPE_CHECKING:
    from onnx import ModelProto

MOST_SHOWN = 256  # images that determine the ranges
NEEDS_CONVERTER = f"fp16 needs onnxconverter-common: {pip_install('export')}"


def int8(model: ModelProto, shown: NDArray[np.float32], *, symmetric: bool) -> ModelProto:
    """Return the model in 8 bits as Q/DQ nodes: weights per channel, activations by their ranges on images.

    model: with a fixed input size. shown: preprocessed images, (n, 3, height, width). symmetric: signed activations
    around 0, which TensorRT demands; ONNX Runtime is faster with unsigned ones. Raises CalibrationError if an operator
    cannot be quantised.
    """
    from onnx import load, save
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        """Gives the quantiser one image at a time."""

        def __init__(self) -> None:
            name = input_of(model)
            self._left: Iterator[dict[str, NDArray[np.float32]]] = (
                {name: shown[row : row + 1]} for row in range(min(len(shown), MOST_SHOWN))
            )

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            return next(self._left, None)

    signs = {"ActivationSymmetric": symmetric, "WeightSymmetric": True}
    logging.getLogger().addFilter(_no_advice)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of older quantisers
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        save(model, before)
        try:
            quantize_static(
                before,
                after,
                Reader(),
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                extra_options=signs,
            )
        except Exception as error:  # onnxruntime's quantiser raises many types
            raise CalibrationError(
                f"it cannot be quantised: {str(error).splitlines()[0] if str(error) else type(error).__name__}; "
                "export the model with plain convolutions and dense layers"
            ) from error
        finally:
            logging.getLogger().removeFilter(_no_advice)
        made: ModelProto = load(after)
    if not any(node.op_type == "QuantizeLinear" for node in made.graph.node):
        raise CalibrationError("it has no operator that can be quantised: use another method")
    return made


def fp16(model: ModelProto) -> ModelProto:
    """Return the model in 16 bits; inputs and outputs stay 32 bits wide. Raises CalibrationError if it cannot."""
    try:
        from onnxconverter_common import float16
    except ImportError as error:
        raise CalibrationError(NEEDS_CONVERTER) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about numbers out of range: answers are compared later
            made: ModelProto = float16.convert_float_to_float16(_outputs_apart(model), keep_io_types=True)
    except ValueError as error:
        raise CalibrationError(f"it cannot be converted to 16 bits: {error}; use another method") from error
    return made


def _outputs_apart(model: ModelProto) -> ModelProto:
    """Return a copy in which no node reads an output: the converter casts outputs and would break their readers."""
    from onnx import ModelProto, helper

    made = ModelProto()
    made.CopyFrom(model)
    for output in made.graph.output:
        inner = f"{output.name}_inside"
        if any(output.name in node.input for node in made.graph.node):
            for node in made.graph.node:
                for names in (node.input, node.output):
                    names[:] = [inner if name == output.name else name for name in names]
            made.graph.node.append(helper.make_node("Identity", [inner], [output.name]))
    return made


def _no_advice(record: logging.LogRecord) -> bool:
    """Whether to keep a log record, that is, unless it is the quantiser's advice to pre-process the model."""
    return "pre-process" not in record.getMessage()
