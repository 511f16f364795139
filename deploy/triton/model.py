"""A model of a Triton repository, for Triton's Python backend: it runs the ONNX file beside it.

write_repository.py --kind python copies it beside the ONNX file, so it imports nothing of jetsel.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


class TritonPythonModel:
    """What the backend makes of this file, once for each instance of the model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the ONNX file of this version."""
        import triton_python_backend_utils as triton  # Triton's own, of its Python backend alone

        self._triton = triton
        config = json.loads(args["model_config"])
        self._input, self._output = config["input"][0]["name"], config["output"][0]["name"]
        path = Path(args["model_repository"], args["model_version"], "model.onnx")
        providers = onnxruntime.get_available_providers()
        self._session = onnxruntime.InferenceSession(str(path), providers=providers)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer requests that were pending together, as one batch: each (n, 3, height, width), then (n, classes)."""
        triton = self._triton
        parts = [triton.get_input_tensor_by_name(request, self._input).as_numpy() for request in requests]
        (numbers,) = self._session.run([self._output], {self._input: np.concatenate(parts)})
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return [
            triton.InferenceResponse([triton.Tensor(self._output, np.ascontiguousarray(part))])
            for part in np.split(numbers, ends)
        ]
