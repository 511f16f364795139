"""The ONNX file that a builder is given: the model's own, its constants folded, in half precision where that is due."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnxruntime

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.child import Child
from jetsel.weights import Weights

CONVERT_S = 900.0
DONE = "converted"  # what jetsel.engines.building.half prints, which is never imported here: it imports onnx


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
    """Write `source` in half precision, in a process of its own; raises EngineFailedError with the repair."""
    root = str(Path(__file__).resolve().parents[3])  # where jetsel is imported from
    paths = ":".join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "jetsel.engines.building.half", str(source.resolve()), str(target.resolve())]
    child = Child(command, {**os.environ, "PYTHONPATH": paths}, output=subprocess.PIPE)
    printed = child.output(CONVERT_S)
    lines = [f"it took longer than {CONVERT_S:g} s"] if printed is None else printed.strip().splitlines() or [""]
    if lines[-1] != DONE:
        raise EngineFailedError(
            f"{weights.name}: this TensorRT takes fp16 only from an ONNX file in half precision, and it cannot be "
            f"converted to that ({lines[-1]}; {child.end()}): set [host] precision to fp32"
        )
