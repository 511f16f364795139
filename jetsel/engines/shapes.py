"""What shapes the tensors inside a model have: seen by running it once on zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime

from jetsel.engines.base import EngineFailedError


def shapes_in(content: bytes, outputs: Sequence[str], input_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each of these outputs, and of the input, in a run of one float32 input of `input_shape`.

    content: an ONNX file. Raises EngineFailedError where ONNX Runtime cannot load or run it.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # one run does not repay it
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        found = session.run(list(outputs), {name: np.zeros(input_shape, np.float32)}) if outputs else []
    except Exception as error:  # ONNX Runtime's exceptions share no base but this one; they end here
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineFailedError(f"ONNX Runtime does not run the model: {reason}") from error
    return {name: input_shape, **{key: array.shape for key, array in zip(outputs, found, strict=True)}}
