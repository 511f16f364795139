"""Engines built with the doubles of TensorRT, in real processes: built, compared and kept, and each way to fail."""

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines import EngineFailedError
from jetsel.engines.building.builder import Builder, EngineOrder, convert_to_float16, fold_constants, opset_repair
from jetsel.engines.building.plans import Check
from jetsel.engines.building.trial import reason_to_reject
from jetsel.zoo import STARTER, scan
from tests.contract.opening import Noise, weights_of
from tests.contract.tiny import CLASSES, PIXELS, matrix_model
from tests.doubles.interpreter import GENERATIONS, make_interpreter

FAMILY = scan([STARTER]).families["starter"]
XS = FAMILY.models[0].weights(len(FAMILY.labels.names))


@pytest.fixture(scope="session")
def interpreters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("interpreters")
    return {version: make_interpreter(folder / version, version) for version in GENERATIONS}


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., object]:
    """Simulate a board, from now on: keys of tests/doubles/common/trt_double/board.py."""
    file = tmp_path / "board.json"
    file.write_text("{}")
    monkeypatch.setenv("JETSEL_DOUBLE", str(file))
    return lambda **settings: file.write_text(json.dumps(settings))


Prepare = Callable[..., HostSettings]


@pytest.fixture
def host(interpreters: dict[str, Path], tmp_path: Path) -> Prepare:
    def prepare(version: str = "8.6", **settings: Any) -> HostSettings:
        return HostSettings(engines=str(tmp_path / "engines"), interpreter=str(interpreters[version]), **settings)

    return prepare


def order(photographs: int = 5, **changes: Any) -> EngineOrder:
    return EngineOrder(**{"weights": XS, "has_qdq": False, "inputs": Noise(XS, photographs), **changes})


def left_in(host: HostSettings) -> list[str]:
    """What an attempt left, the builder's own timings apart."""
    folder = host.folder
    return [path.name for path in folder.iterdir() if path.suffix != ".cache"] if folder.exists() else []


def refusal(builder: Builder, what: EngineOrder | None = None) -> str:
    with pytest.raises(EngineFailedError) as raised:
        builder.build(what or order())
    return str(raised.value)


@pytest.mark.parametrize(
    ("version", "precision"), [("8.2", "fp16"), ("8.6", "fp16"), ("10", "fp16"), ("8.2", "fp32"), ("11", "fp32")]
)
def test_an_engine_is_built_and_compared(host: Prepare, version: str, precision: str) -> None:
    settings = host(version, precision=precision)
    builder = Builder(settings)
    plan = builder.build(order(60))
    check = plan.record.check
    assert (check.photographs, check.source, check.agreement) == (60, "noise", 1.0)
    assert check.spread > 5
    assert check.largest_difference < (1e-4 if precision == "fp32" else 0.05)
    assert check.device_ms is not None
    assert plan.record.plan_bytes == plan.path.stat().st_size
    assert plan.record.key.tensorrt == builder.about["version"]
    assert sorted(left_in(settings)) == sorted([plan.path.name, plan.path.with_suffix(".json").name])


def test_what_stands_is_not_built_again_unless_it_is_forced(host: Prepare) -> None:
    builder = Builder(host())
    first = builder.build(order())
    stamp = first.path.stat().st_mtime_ns
    assert builder.build(order()) == first
    assert first.path.stat().st_mtime_ns == stamp
    builder.build(order(), force=True)
    assert first.path.stat().st_mtime_ns > stamp


def test_int8_of_a_file_without_q_dq_nodes_is_refused_with_the_repair(
    host: Prepare, board: Callable[..., object]
) -> None:
    board(profile="orin")
    assert "Q/DQ nodes" in refusal(Builder(host(precision="int8")))


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"build_none": True}, "builds no engine"),
        ({"build_signal": int(signal.SIGSEGV)}, "ended by SIGSEGV)"),
        ({"build_signal": int(signal.SIGKILL)}, "ended by SIGKILL): most likely no memory was left"),
        ({"deserialize_none": True}, "does not load"),
        ({"context_none": True}, "xs: "),
        ({"nan_outputs": True}, "not finite"),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_nothing(
    host: Prepare, board: Callable[..., object], faults: dict[str, Any], words: str
) -> None:
    settings = host()
    builder = Builder(settings)
    board(faults=faults)
    said = refusal(builder)
    assert said.startswith("xs: ")
    assert words in said
    assert left_in(settings) == []
    board()
    assert builder.build(order()).path.exists()


@pytest.mark.parametrize(
    ("opset", "tensorrt", "repair"),
    [
        (13, "8.2.1.8", ""),
        (17, "8.2.1.8", "its opset is 17, and TensorRT 8.2.1.8 reads up to 13: export it with opset_version=13"),
        (21, "10.3.0", "reads up to 20: export it with opset_version=20"),
        (21, "7.1.3", ""),
    ],
)
def test_an_opset_that_tensorrt_does_not_read_is_named_with_the_one_that_it_does(
    tmp_path: Path, opset: int, tensorrt: str, repair: str
) -> None:
    model = onnx.ModelProto.FromString(matrix_model(np.ones((PIXELS, 3), np.float32)))
    model.opset_import[0].version = opset
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert opset_repair(path, tensorrt).removeprefix("; ").endswith(repair)
    assert bool(opset_repair(path, tensorrt)) == bool(repair)


def test_a_file_that_tensorrt_refuses_is_refused_with_the_opset_that_it_reads(
    host: Prepare, board: Callable[..., object], tmp_path: Path
) -> None:
    model = onnx.load(order().weights.path)
    model.opset_import[0].version = 14
    path = tmp_path / "later.onnx"
    onnx.save(model, path)
    builder = Builder(host("8.2"))
    board(unsupported_operator="Conv")
    later = replace(order().weights, path=path)
    assert "for op: Conv; its opset is 14, and TensorRT" in refusal(builder, order(weights=later))


@pytest.mark.slow
def test_a_build_that_takes_too_long_is_killed(host: Prepare, board: Callable[..., object]) -> None:
    settings = host("10")
    builder = Builder(settings, limit_s=1)
    board(build_ms=600_000)
    assert "--limit-s" in refusal(builder)
    assert left_in(settings) == []


def test_a_model_whose_file_is_gone_says_so(host: Prepare, tmp_path: Path) -> None:
    gone = Weights("xs", tmp_path / "gone.onnx", XS.sha256, XS.height_px, XS.width_px, XS.classes)
    assert refusal(Builder(host()), order(weights=gone)).endswith("put the weights there")


@pytest.mark.parametrize(
    ("precision", "photographs", "agreement", "difference", "is_used"),
    [
        ("fp16", 50, 0.98, 9.9, True),  # with enough photographs agreement decides
        ("fp32", 100, 0.97, 0.0, False),
        ("int8", 100, 0.95, 9.9, True),
        ("int8", 100, 0.94, 0.0, False),
        ("fp16", 49, 0.0, 0.5, True),  # with fewer a logit's difference, of a spread of 10
        ("fp16", 49, 1.0, 0.51, False),
        ("int8", 5, 1.0, 2.5, True),
        ("int8", 5, 1.0, 2.6, False),
    ],
)
def test_which_figures_let_an_engine_be_used(
    precision: Any, photographs: int, agreement: float, difference: float, is_used: bool
) -> None:
    check = Check(
        photographs=photographs,
        source="s",
        agreement=agreement,
        largest_difference=difference,
        spread=10.0,
        device_ms=None,
    )
    assert (reason_to_reject(check, precision) is None) == is_used


def large(path: Path) -> Weights:
    """Write a model of a weight that float16 does not have, which ends at 65,504."""
    path.write_bytes(matrix_model(np.full((PIXELS, CLASSES), 1e6, np.float32)))
    return weights_of(path)


def kinds(path: Path) -> set[int]:
    return {tensor.data_type for tensor in onnx.load(str(path)).graph.initializer}


def test_weights_that_are_stored_in_half_become_constants_and_then_half_again(tmp_path: Path) -> None:
    folded, half = tmp_path / "folded.onnx", tmp_path / "half.onnx"
    fold_constants(XS, folded)
    assert kinds(folded) == {TensorProto.FLOAT}
    assert "Cast" not in {node.op_type for node in onnx.load(str(folded)).graph.node}
    convert_to_float16(XS, folded, half)
    assert kinds(half) == {TensorProto.FLOAT16}
    onnx.checker.check_model(onnx.load(str(half)))
    graph = onnx.load(str(half)).graph
    assert {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)} == {TensorProto.FLOAT}


def test_what_cannot_be_converted_says_why(tmp_path: Path) -> None:
    (tmp_path / "none.onnx").write_bytes(b"no model")
    with pytest.raises(EngineFailedError, match=r"converted to that \(.*set \[host\] precision"):
        convert_to_float16(XS, tmp_path / "none.onnx", tmp_path / "half.onnx")


def test_tensorrt_11_builds_fp16_from_a_file_in_half_precision(host: Prepare, board: Callable[..., object]) -> None:
    board(profile="orin")
    plan = Builder(host("11")).build(order())
    assert plan.record.key.precision == "fp16"
    assert plan.record.plan_bytes < 150_000  # of 62,000 parameters: two bytes each, not four
    assert "in half precision" in plan.record.notes[0]
    assert plan.record.check.agreement == 1.0
    assert 0 < plan.record.check.largest_difference < 0.01 * plan.record.check.spread


def test_a_model_that_half_precision_breaks_is_refused(
    host: Prepare, board: Callable[..., object], tmp_path: Path
) -> None:
    board(profile="orin")
    weights = large(tmp_path / "large.onnx")
    settings = host("11")
    assert "--precision fp32" in refusal(Builder(settings), order(weights=weights, inputs=Noise(weights)))
    assert left_in(settings) == []
