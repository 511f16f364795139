"""Under the Python of each board the host builds and runs engines with that board's TensorRT, by its stand-in."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX
from tests.doubles.interpreter import GENERATIONS, make_interpreter
from tests.host import interpreters
from tests.host.models import WEIGHTS, images, load_request, tiny_file
from tests.host.started import StartedHost
from tests.host.test_probe import probe

GENERATION_OF = {"3.6": "8.2", "3.8": "8.6", "3.10": "10", "3.12": "11"}  # JetPack 4.6.2, 5, 6 and 7
MAX_BATCH = 4


def pairs() -> list[tuple[str, str]]:
    """Each interpreter with the TensorRT of its board, and our own with every one."""
    minors = {python: interpreters.version(python).rpartition(".")[0] for python in interpreters.found()}
    boards = [(python, GENERATION_OF[minor]) for python, minor in minors.items() if minor in GENERATION_OF]
    return sorted({*boards, *((sys.executable, generation) for generation in GENERATIONS)})


@pytest.fixture(
    scope="module", params=pairs(), ids=lambda pair: f"{interpreters.short_name(pair[0])} with TensorRT {pair[1]}"
)
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An interpreter that has a TensorRT, and which."""
    python, generation = request.param
    made = make_interpreter(tmp_path_factory.mktemp("board") / "python", generation, python=python)
    return str(made), generation


@pytest.fixture
def on_board(board: tuple[str, str]) -> Iterator[StartedHost]:
    with StartedHost(board[0], "tensorrt") as started:
        yield started


def build_request(folder: Path, **changes: Any) -> dict[str, Any]:
    """What a host is asked to build of the tiny model."""
    request = {"onnx": str(tiny_file(folder)), "plan": str(folder / "tiny.plan"), "precision": "fp32"}
    request |= {"max_batch": MAX_BATCH, "input_px": [HEIGHT_PX, WIDTH_PX], "workspace_bytes": 1 << 24}
    request |= {"timing_cache": str(folder / "timings"), "calibration_cache": None, "options": {}}
    return {**request, "input": {"offset": 0, "bytes": 4096}, **changes}


def test_the_probe_finds_all_that_it_needs(board: tuple[str, str]) -> None:
    found = probe(board[0], "tensorrt")
    assert (found["usable"], found["reason"], found["isolated"]) == (True, None, True)
    assert found["modules"]["tensorrt"]["version"].startswith(f"{board[1]}.")
    assert found["modules"]["pycuda"]["error"] is None
    assert found["gpu"]["compute_capability"] == "6.2"


def test_hello_names_the_gpu_and_every_library(on_board: StartedHost, board: tuple[str, str]) -> None:
    reply = on_board.hello()
    assert reply["ok"], reply
    assert (reply["backend"], reply["pid"]) == ("tensorrt", on_board.process.pid)
    assert reply["python"] == interpreters.version(board[0])
    assert reply["version"].startswith(f"{board[1]}.")
    assert reply["libraries"].keys() >= {"numpy", "pycuda", "cuda"}
    assert reply["gpu"]["compute_capability"] == "6.2"
    assert reply["gpu"]["memory_bytes"] > 0
    assert reply["memory"]["available_bytes"] > 0


def test_an_engine_is_built_loaded_run_and_unloaded(on_board: StartedHost, tmp_path: Path) -> None:
    assert on_board.hello()["ok"]
    built = on_board.ask("build", **build_request(tmp_path))
    assert built["ok"], built
    plan = (tmp_path / "tiny.plan").read_bytes()
    assert (built["plan_bytes"], built["sha256"]) == (len(plan), hashlib.sha256(plan).hexdigest())
    request = load_request(tmp_path / "tiny.plan")
    loaded = on_board.ask("load", **request)
    assert loaded["ok"], loaded
    assert (loaded["classes"], loaded["max_batch"]) == (WEIGHTS.shape[1], MAX_BATCH)
    assert loaded["embedding_width"] == PIXELS
    for count in (1, 3, MAX_BATCH):
        batch = images(count, seed=count)
        logits, embedding = on_board.infer(request["model"], batch)
        assert logits == pytest.approx(batch.reshape(count, PIXELS) @ WEIGHTS, abs=1e-5)
        assert embedding is not None
        assert np.array_equal(embedding, batch.reshape(count, PIXELS))
    assert on_board.ask("unload", model=request["model"])["ok"]
    assert on_board.ask("quit")["ok"]
    assert on_board.ended()[0] == 0


def test_more_images_than_the_engine_was_built_for_are_refused(on_board: StartedHost, tmp_path: Path) -> None:
    assert on_board.hello()["ok"]
    assert on_board.ask("build", **build_request(tmp_path))["ok"]
    request = load_request(tmp_path / "tiny.plan")
    assert on_board.ask("load", **request)["ok"]
    place = {"offset": 0, "shape": [MAX_BATCH + 1, 3, HEIGHT_PX, WIDTH_PX]}
    reply = on_board.ask("infer", model=request["model"], input=place, output={"offset": 4096, "bytes": 4096})
    assert (reply["ok"], reply["code"]) == (False, "bad-request")
    assert on_board.infer(request["model"], images(1))[0].shape == (1, WEIGHTS.shape[1])


@pytest.mark.parametrize("changed", ["tensorrt", "gpu", "compute_capability"])
def test_a_plan_of_another_tensorrt_or_gpu_is_not_loaded(on_board: StartedHost, tmp_path: Path, changed: str) -> None:
    hello = on_board.hello()
    assert on_board.ask("build", **build_request(tmp_path))["ok"]
    gpu = hello["gpu"]
    ours = {"tensorrt": hello["version"], "gpu": gpu["name"], "compute_capability": gpu["compute_capability"]}
    request = load_request(tmp_path / "tiny.plan")
    reply = on_board.ask("load", **{**request, "made_for": {**ours, changed: "another"}})
    assert (reply["ok"], reply["code"]) == (False, "mismatch"), reply
    assert "jetsel models build" in reply["message"]
    assert on_board.ask("load", **{**request, "made_for": ours})["ok"]


def test_what_is_no_plan_is_refused(on_board: StartedHost, tmp_path: Path) -> None:
    assert on_board.hello()["ok"]
    (tmp_path / "tiny.plan").write_bytes(b"no plan at all")
    reply = on_board.ask("load", **load_request(tmp_path / "tiny.plan"))
    assert (reply["ok"], reply["code"]) == (False, "load-failed"), reply
    assert on_board.ask("ping")["ok"]


def test_what_is_no_onnx_file_is_not_built(on_board: StartedHost, tmp_path: Path) -> None:
    assert on_board.hello()["ok"]
    (tmp_path / "garbage.onnx").write_bytes(b"no model at all")
    reply = on_board.ask("build", **build_request(tmp_path, onnx=str(tmp_path / "garbage.onnx")))
    assert (reply["ok"], reply["code"]) == (False, "build-failed"), reply
    assert not (tmp_path / "tiny.plan").exists()
    assert on_board.ask("ping")["ok"]
