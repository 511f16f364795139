"""INT8 is built where the hardware has it, and refused where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.building.builder import Builder, Order
from jetsel.host_settings import HostSettings
from tests.board.building import MODELS
from tests.contract.opening import Noise

WITHOUT_CALIBRATORS = 11  # TensorRT's major version


def test_int8_is_for_the_gpus_that_are_fast_at_it(settings: HostSettings, about: Mapping[str, Any]) -> None:
    weights = MODELS["xs"]
    builder = Builder(replace(settings, precision="int8"))
    order = Order(weights, has_qdq=False, inputs=Noise(weights, 16), calibration=Noise(weights, 64))
    refused = None
    if not about["gpu"]["fast_int8"]:
        refused = "is not fast in int8: build it as fp16"
    elif int(about["version"].split(".")[0]) >= WITHOUT_CALIBRATORS:
        refused = "does not calibrate: INT8 needs an ONNX file with Q/DQ nodes"
    if refused is not None:
        with pytest.raises(EngineFailedError, match=refused):
            builder.build(order, lambda *_: None)
        return
    record = builder.build(order, lambda *_: None).record
    assert record.key.precision == "int8"
    assert "calibrated on 64 photographs (noise)" in record.notes
