"""The ONNX file that a builder is given: the model's own, its constants folded, in half precision where that is due."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import onnxruntime

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.bounded import run
from jetsel.weights import Weights

CONVERT_S = 900.0
EXIT_WITHOUT_ONNX = 3  # of jetsel.engines.building.half, which is never imported here: it imports the onnx package
ONNX_PACKAGE = "pip install 'jetsel[tensorrt]'"


def fold(weights: Weights, target: Path) -> Path:
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
    return target


def halve(weights: Weights, source: Path, target: Path, tell: Callable[[str, float | None], None]) -> Path:
    """Write `source` in half precision, in a process of its own; raises EngineFailedError with the repair."""
    tell("converting to half precision", None)
    root = str(Path(__file__).resolve().parents[3])  # where jetsel is imported from
    paths = ":".join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "jetsel.engines.building.half", str(source.resolve()), str(target.resolve())]
    ended = run(command, CONVERT_S, {**os.environ, "PYTHONPATH": paths})
    if ended.status == 0:
        return target
    said = " ".join(ended.output.decode(errors="replace").split()) or ended.words
    if ended.status == EXIT_WITHOUT_ONNX:
        raise EngineFailedError(
            f"{weights.name}: this TensorRT takes fp16 only from an ONNX file in half precision, and what writes one "
            f"is not installed ({said}): {ONNX_PACKAGE}, or set [host] precision to fp32"
        )
    how = f"it took longer than {CONVERT_S:g} s" if ended.status is None else said or f"status {ended.status}"
    raise EngineFailedError(
        f"{weights.name}: it cannot be converted to half precision ({how}): set [host] precision to fp32"
    )
