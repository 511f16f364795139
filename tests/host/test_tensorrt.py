"""The host builds and serves TensorRT engines, through the real process, over doubles of four generations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jetsel.engines.base import EngineFailedError
from tests.contract.tiny import PIXELS, matrix_model
from tests.doubles.interpreter import GENERATIONS
from tests.host.bench import COUNTING, Begin, benches, pixels


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Begin]:
    with benches(tmp_path) as begin:
        yield begin


@pytest.mark.parametrize("generation", GENERATIONS)
def test_engines_share_their_scratch_memory(start: Begin, generation: str) -> None:
    bench = start(generation, profile="discrete", engine_bytes=1 << 20, scratch_bytes=1 << 22)
    bench.build(matrix_model(COUNTING))
    first, second = bench.load(1), bench.load(2)
    assert first["scratch_bytes"] == second["scratch_bytes"] == 1 << 22
    assert first["cost_bytes"] - second["cost_bytes"] == 1 << 22
    assert 1 << 20 <= second["cost_bytes"] < 1 << 21


@pytest.mark.parametrize("generation", GENERATIONS)
def test_engines_move_when_one_that_needs_more_scratch_memory_comes(start: Begin, generation: str) -> None:
    bench = start(generation, scratch_bytes=256)
    bench.build(matrix_model(COUNTING), name="little")
    bench.set_board({"scratch_bytes": 1 << 20})
    bench.build(matrix_model(2 * COUNTING), name="much")
    assert bench.load(1, name="little")["scratch_bytes"] == 256
    assert bench.load(2, name="much")["scratch_bytes"] == 1 << 20
    assert bench.infer(pixels(1), 1)["logits"].tolist() == [[612, 630, 648, 666]]
    assert bench.infer(pixels(1), 2)["logits"].tolist() == [[1224, 1260, 1296, 1332]]
    assert bench.unload(2)["ok"]
    assert bench.infer(pixels(1), 1)["logits"].tolist() == [[612, 630, 648, 666]]
    assert bench.unload(1)["ok"]
    assert bench.load(3, name="much")["ok"]
    assert bench.infer(pixels(1), 3)["logits"].tolist() == [[1224, 1260, 1296, 1332]]


@pytest.mark.parametrize(
    ("board", "said"),
    [
        pytest.param({"faults": {"deserialize_none": True}}, "Serialization assertion failed", id="no engine"),
        pytest.param({"faults": {"context_none": True}}, "out of memory", id="no context"),
        pytest.param({"faults": {"mem_alloc_memory": True}}, "serve fewer or smaller models", id="no memory"),
        pytest.param({"used_bytes": 8235577344}, "out of memory", id="no memory for weights"),
    ],
)
def test_an_engine_that_does_not_load_fails_alone(start: Begin, board: dict[str, Any], said: str) -> None:
    bench = start("11")
    bench.build(matrix_model(COUNTING))
    assert bench.load(1)["ok"]
    bench.set_board(board)
    refused = bench.load(2)
    assert (refused["ok"], refused["code"]) == (False, "load-failed")
    assert said in refused["message"]
    assert bench.infer(pixels(1), 1)["logits"].tolist() == [[612, 630, 648, 666]]
    bench.set_board({})
    assert bench.load(2)["ok"]


@pytest.mark.parametrize("generation", ["8.2", "10"])
def test_what_is_no_plan_is_refused_with_the_command_that_makes_one(start: Begin, generation: str) -> None:
    bench = start(generation)
    (bench.folder / "m.plan").write_bytes(b"not a plan")
    refused = bench.load()
    assert refused["code"] == "load-failed"
    assert "magicTag does not match" in refused["message"]
    assert "jetsel models build m" in refused["message"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_run_that_tensorrt_refuses_fails_alone(start: Begin, generation: str) -> None:
    bench = start(generation)
    bench.build(matrix_model(COUNTING))
    bench.load()
    bench.set_board({"faults": {"enqueue_false": {"times": 1}}})
    refused = bench.infer(pixels(1))
    assert (refused["ok"], refused["code"]) == (False, "infer-failed")
    assert "invalid argument" in refused["message"]
    assert bench.infer(pixels(1))["logits"].tolist() == [[612, 630, 648, 666]]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_fault_of_the_gpu_is_answered_and_ends_the_process(start: Begin, generation: str) -> None:
    bench = start(generation, profile="orin")
    bench.build(matrix_model(COUNTING))
    bench.load()
    bench.set_board({"profile": "orin", "faults": {"enqueue_error": True}})
    refused = bench.infer(pixels(1))
    assert (refused["ok"], refused["code"]) == (False, "poisoned")
    assert "illegal memory access" in refused["message"]
    bench.ends = "exit status 3"


def test_a_host_that_cannot_use_the_gpu_says_why(start: Begin) -> None:
    with pytest.raises(EngineFailedError, match="CUDA does not start"):
        start("8.2", faults={"cuda_initialization": True})


DOUBLES = Path(__file__).parents[1] / "doubles"


@pytest.mark.parametrize("table", sorted((DOUBLES / "tables").glob("*.json")), ids=lambda path: path.stem)
def test_a_double_offers_what_the_real_bindings_have_and_no_more(table: Path) -> None:
    offered = json.loads(table.read_text())
    real = json.loads((DOUBLES / offered["made_of"]).read_text())
    assert set(offered["module"]) <= set(real["module"])
    for name, attributes in offered["classes"].items():
        assert set(attributes) <= set(real["classes"][name]), name


@pytest.mark.parametrize(
    ("generation", "is_half", "is_half_file"),
    [
        ("8.2", False, False),
        ("8.2", True, False),
        ("8.6", False, False),
        ("10", False, False),
        ("10", True, True),
        ("11", True, True),
    ],
)
def test_fp16_is_a_flag_of_the_builder_or_in_the_file(
    start: Begin, generation: str, is_half: bool, is_half_file: bool
) -> None:
    bench = start(generation)
    onnx = matrix_model(COUNTING, embedding=not is_half_file, is_half=is_half_file)
    assert bench.build(onnx, precision="fp16", is_half=is_half)["notes"] == []
    assert bench.load()["embedding_width"] == (None if is_half_file else PIXELS)
    # 0.1 is 0.0999755859375 as a half; 612 times that is 61.185, and halves are 1/32 apart there, 1/16 above 64.
    assert bench.infer(pixels(0.1))["logits"].tolist() == [[61.1875, 63.0, 64.8125, 66.5625]]


def test_tensorrt_11_takes_no_fp16_from_another_file(start: Begin) -> None:
    bench = start("11")
    refused = bench.build(matrix_model(COUNTING), precision="fp16")
    assert (refused["ok"], refused["code"]) == (False, "unsupported")
    assert "only from an FP16 file" in refused["message"]


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
        pytest.param({"workspace_needed_bytes": 1 << 30}, "see [host] workspace_mb", id="a workspace too small"),
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
