"""What MLServer runs for model-settings.json beside it, in its own environment: one ONNX file."""

from __future__ import annotations

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxRuntime(MLModel):
    """The model."""

    async def load(self) -> bool:
        path = await get_model_uri(self._settings)
        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        (pixels,) = payload.inputs
        assert pixels.name == "pixels"
        (logits,) = self._session.run(["logits"], {"image": NumpyCodec.decode_input(pixels)})
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("scores", logits)])
