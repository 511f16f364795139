"""ONNX Runtime on the processor: tests use it instead of a GPU, and its crashes do not reach the daemon."""

import importlib
import os
from typing import Any, Dict, Optional, Tuple

from .backend import HostModel, Runtime
from .messages import Refusal, first_line


class OnnxRuntime(Runtime):
    """ONNX Runtime on the processor."""

    def __init__(self) -> None:
        # From 1.31 on ONNX Runtime sends telemetry to its maker, unless this is set before the import.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        self._onnxruntime = importlib.import_module("onnxruntime")

    def describe(self) -> Dict[str, Any]:
        return {"version": str(self._onnxruntime.__version__), "libraries": {}, "gpu": None}

    def open(self, request: Dict[str, Any], content: bytes) -> HostModel:
        """Load a model from an ONNX file's content; raises Refusal."""
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(request.get("threads") or 1)
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            session = self._onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions share no other base
            raise Refusal("load-failed", f"ONNX Runtime does not load it: {first_line(error)}") from None
        return OnnxModel(session)


class OnnxModel(HostModel):
    """One model in a session of ONNX Runtime; raises Refusal if it has no output named logits."""

    def __init__(self, session: Any) -> None:
        self._session = session
        (only_input,) = session.get_inputs()
        names = {output.name for output in session.get_outputs()}
        if "logits" not in names:
            raise Refusal("load-failed", "it has no output named logits; export it again")
        self._outputs = [name for name in ("logits", "embedding") if name in names]
        self._input = only_input.name
        self.max_batch = only_input.shape[0] if isinstance(only_input.shape[0], int) else None

    def run(self, batch: Any) -> Tuple[Any, Any, Optional[float]]:
        try:
            outputs = self._session.run(self._outputs, {self._input: batch})
        except Exception as error:  # see above: no common base
            raise Refusal("infer-failed", f"inference failed: {first_line(error)}") from None
        return outputs[0], outputs[1] if len(outputs) > 1 else None, None
