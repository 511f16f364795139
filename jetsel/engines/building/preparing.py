"""The ONNX file that a builder is given: the model's own, its constants folded, in half precision where that is due."""

from __future__ import annotations

from pathlib import Path

import onnxruntime

from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError


def fold(weights: Weights, target: Path) -> None:
    """Write the model with everything that is constant computed; raises EngineFailedError.

    Kernels that are stored as float16 and cast are no constants to the parsers of TensorRT 8: "TensorRT only supports
    multi-input conv for explicit precision QAT networks" (onnx/onnx-tensorrt issue 645).
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC  # ONNX's own operators alone
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    try:
        onnxruntime.InferenceSession(str(weights.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no base but this one; they end here
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineFailedError(f"{weights.name}: ONNX Runtime does not prepare it for a build: {reason}") from None


def halve(weights: Weights, source: Path, target: Path) -> None:
    """Write `source` with weights and arithmetic in float16, its inputs and outputs in float32, to `target`.

    A strongly typed network computes in the types that its ONNX file has. What float16 does badly stays in float32, as
    ONNX Runtime's own list of operators has it. Raises EngineFailedError with the repair.
    """
    import onnx  # which no process that serves does
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    try:
        model = OnnxModel(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True))
        model.topological_sort()  # the conversion puts the input's cast last
        onnx.checker.check_model(model.model)
        onnx.save(model.model, str(target))
    except Exception as error:  # onnx and protobuf raise whatever they like; it ends here
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineFailedError(
            f"{weights.name}: this TensorRT takes fp16 only from an ONNX file in half precision, and it cannot be "
            f"converted to that ({reason}): set [host] precision to fp32"
        ) from None
