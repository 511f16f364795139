"""Half-precision files for TensorRT 11, which takes fp16 in no other way: converted, compared, built from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines import EngineFailedError
from jetsel.engines.building.builder import Builder, EngineOrder, fold, halve
from jetsel.zoo import STARTER, scan
from tests.contract.opening import Noise, weights_of
from tests.contract.tiny import CLASSES, PIXELS, matrix_model
from tests.doubles.interpreter import make_interpreter

FAMILY = scan([STARTER]).families["starter"]
XS = FAMILY.models[0].weights(len(FAMILY.labels.names))


def large(path: Path) -> Weights:
    """Write a model of a weight that float16 does not have, which ends at 65,504."""
    path.write_bytes(matrix_model(np.full((PIXELS, CLASSES), 1e6, np.float32)))
    return weights_of(path)


def kinds(path: Path) -> set[int]:
    return {tensor.data_type for tensor in onnx.load(str(path)).graph.initializer}


def test_weights_that_are_stored_in_half_become_constants_and_then_half_again(tmp_path: Path) -> None:
    folded, half = tmp_path / "folded.onnx", tmp_path / "half.onnx"
    fold(XS, folded)
    assert kinds(folded) == {TensorProto.FLOAT}
    assert "Cast" not in {node.op_type for node in onnx.load(str(folded)).graph.node}
    halve(XS, folded, half)
    assert kinds(half) == {TensorProto.FLOAT16}
    onnx.checker.check_model(onnx.load(str(half)))
    graph = onnx.load(str(half)).graph
    assert {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)} == {TensorProto.FLOAT}


def test_what_cannot_be_converted_says_why(tmp_path: Path) -> None:
    (tmp_path / "none.onnx").write_bytes(b"no model")
    with pytest.raises(EngineFailedError, match=r"converted to that \(.*set \[host\] precision"):
        halve(XS, tmp_path / "none.onnx", tmp_path / "half.onnx")


@pytest.fixture
def host(tmp_path: Path) -> Callable[..., HostSettings]:
    python = make_interpreter(tmp_path / "python", "11", board={"profile": "orin"})
    return lambda: HostSettings(tmp_path / "engines", str(python))


def test_tensorrt_11_builds_fp16_from_a_file_in_half_precision(host: Callable[..., HostSettings]) -> None:
    plan = Builder(host()).build(EngineOrder(XS, False, Noise(XS)))
    assert plan.record.key.precision == "fp16"
    assert plan.record.plan_bytes < 150_000  # of 62,000 parameters: two bytes each, not four
    assert "in half precision" in plan.record.notes[0]
    assert plan.record.check.agreement == 1.0
    assert 0 < plan.record.check.largest_difference < 0.01 * plan.record.check.spread


def test_a_model_that_half_precision_breaks_is_refused(host: Callable[..., HostSettings], tmp_path: Path) -> None:
    weights = large(tmp_path / "large.onnx")
    with pytest.raises(EngineFailedError) as raised:
        Builder(host()).build(EngineOrder(weights, False, Noise(weights)))
    assert "--precision fp32" in str(raised.value)
    assert not [path for path in (tmp_path / "engines").iterdir() if path.suffix != ".cache"]
