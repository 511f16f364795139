"""The starter family is built by the command that owners use, and answers as ONNX Runtime does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jetsel.engines.building.trial import LARGEST_DIFFERENCE
from jetsel.engines.onnx import OnnxEngine
from jetsel.host_settings import HostSettings
from tests.board.building import MODELS
from tests.board.conftest import Built
from tests.contract.opening import Models, Subject, photographs


@pytest.mark.parametrize("name", MODELS)
def test_it_is_built_and_answers_as_onnx_runtime_does(
    built: Built, settings: HostSettings, precision: str, name: str
) -> None:
    told = built(precision, name)
    assert told["record"]["key"]["precision"] == precision
    assert told["record"]["check"]["agreement"] > 0.9
    weights, batch = MODELS[name], photographs(8)
    expected = OnnxEngine(name, weights.path, concurrency=1, threads=1).infer(batch).logits
    models = Models(Subject("tensorrt", replace(settings, precision=precision)))
    try:
        found = models.open(weights).infer(batch).logits
    finally:
        models.close()
    assert np.abs(found - expected).max() <= LARGEST_DIFFERENCE[precision] * np.ptp(expected)
