"""The host builds TensorRT engines, through the real process, over doubles of four generations of TensorRT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.tiny import matrix_model
from tests.doubles.interpreter import GENERATIONS
from tests.host.bench import COUNTING, Begin, benches, pixels


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Begin]:
    with benches(tmp_path) as begin:
        yield begin


@pytest.mark.parametrize(("generation", "is_half"), [("8.2", False), ("8.2", True), ("8.6", False), ("10", False)])
def test_fp16_is_a_flag_of_the_builder(start: Begin, generation: str, is_half: bool) -> None:
    bench = start(generation)
    assert bench.build(matrix_model(COUNTING), precision="fp16", is_half=is_half)["notes"] == []
    assert bench.load()["ok"]
    # 0.1 is 0.0999755859375 as a half; 612 times that is 61.185, and halves are 1/32 apart there, 1/16 above 64.
    assert bench.infer(pixels(0.1))["logits"].tolist() == [[61.1875, 63.0, 64.8125, 66.5625]]


def test_tensorrt_11_takes_fp16_from_an_fp16_file_alone(start: Begin) -> None:
    bench = start("11")
    refused = bench.build(matrix_model(COUNTING), precision="fp16")
    assert (refused["ok"], refused["code"]) == (False, "unsupported")
    assert "only from an FP16 file" in refused["message"]
    assert bench.build(matrix_model(COUNTING, embedding=False, is_half=True), precision="fp16", is_half=True)["ok"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_int8_takes_its_steps_from_the_file(start: Begin, generation: str) -> None:
    bench = start(generation, profile="orin")
    built = bench.build(matrix_model(COUNTING, embedding=False, step=0.5), precision="int8")
    assert built["ok"]
    bench.load()
    assert bench.infer(pixels(0.3))["logits"].tolist() == [[306, 315, 324, 333]]  # 0.3 is 0.6 steps: one, which is 0.5


@pytest.mark.parametrize("generation", GENERATIONS)
def test_timings_are_kept_for_the_next_build(start: Begin, generation: str) -> None:
    bench = start(generation, build_ms=2000)
    first = bench.build(matrix_model(COUNTING))
    second = bench.build(matrix_model(COUNTING))
    assert first["build_s"] >= 2 > second["build_s"]
    assert first["notes"] == second["notes"] == []


@pytest.mark.parametrize(("generation", "what"), [("8.2", "damaged"), ("11", "of another GPU"), ("10", "empty")])
def test_timings_of_no_use_are_replaced(start: Begin, generation: str, what: str) -> None:
    bench = start(generation)
    timings = bench.folder / "timings"
    if what == "of another GPU":
        bench.set_board({"gpu": "Orin"})
        assert bench.build(matrix_model(COUNTING))["ok"]
        bench.set_board({})
    else:
        timings.write_bytes(b"" if what == "empty" else b"no timings")
    built = bench.build(matrix_model(COUNTING))
    assert built["ok"]
    assert [str(timings) in note for note in built["notes"]] == ([] if what == "empty" else [True])
    assert bench.build(matrix_model(COUNTING))["notes"] == []


@pytest.mark.parametrize("generation", ["8.2", "10"])
def test_a_lean_build_that_fails_is_tried_again_with_every_library(start: Begin, generation: str) -> None:
    bench = start(generation, faults={"build_none": {"times": 1}})
    built = bench.build(matrix_model(COUNTING), lean_tactics=True)
    assert built["notes"] == ["built with cuDNN and cuBLAS: without them TensorRT finds no engine"]
    assert bench.load()["ok"]


@pytest.mark.parametrize(
    ("board", "said"),
    [
        pytest.param({"faults": {"build_none": True}}, "could not find any implementation for node", id="no engine"),
        pytest.param({"workspace_needed_bytes": 1 << 30}, "see [host] workspace_mb", id="a workspace too small"),
        pytest.param({"unsupported_operator": "MatMul"}, "No importer registered for op: MatMul", id="an operator"),
        pytest.param({"faults": {"cuda_initialization": True}}, "CUDA initialization failure", id="no builder"),
    ],
)
def test_a_build_that_fails_says_what_tensorrt_says(start: Begin, board: dict[str, Any], said: str) -> None:
    bench = start("8.2")
    bench.set_board(board)
    refused = bench.build(matrix_model(COUNTING))
    assert (refused["ok"], refused["code"]) == (False, "build-failed")
    assert said in refused["message"]
    assert not (bench.folder / "m.plan").exists()
    bench.set_board({})
    assert bench.build(matrix_model(COUNTING))["ok"]


@pytest.mark.parametrize(
    ("onnx", "changes", "said"),
    [
        pytest.param(b"not an ONNX file", {}, "does not accept this ONNX file", id="no ONNX"),
        pytest.param(matrix_model(COUNTING), {"input_px": [2, 4]}, "not [3, 2, 4] after the batch", id="another size"),
        pytest.param(
            matrix_model(COUNTING), {"plan": "/nowhere/m.plan"}, "/nowhere/m.plan", id="no place for the plan"
        ),
    ],
)
def test_a_build_that_cannot_be_is_refused(start: Begin, onnx: bytes, changes: dict[str, Any], said: str) -> None:
    refused = start("10").build(onnx, **changes)
    assert refused["code"] == "build-failed"
    assert said in refused["message"]
