"""Under each Python the host says who it is, loads models and answers as ONNX Runtime does in process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from jetsel.engines.hosting.process import HostProcess, Start
from jetsel.zoo import STARTER
from tests.contract.tiny import PIXELS
from tests.host import interpreters
from tests.host.models import CLASSES, WEIGHTS, images, load_request, tiny_file
from tests.host.started import LIMIT_S, StartedHost
from tests.python36 import LIBRARY

STARTER_CLASSES, STARTER_PX = 100, (64, 64)


def test_hello_says_who_answers(fresh: StartedHost, interpreter: str) -> None:
    reply = fresh.hello()
    assert reply["ok"], reply
    assert (reply["protocol"], reply["backend"], reply["pid"]) == (1, "onnxruntime", fresh.process.pid)
    assert reply["python"] == interpreters.version(interpreter)
    asked = "import numpy, onnxruntime; print(numpy.__version__, onnxruntime.__version__)"
    versions = subprocess.run([interpreter, "-I", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert [reply["libraries"]["numpy"], reply["version"]] == versions.split()
    assert reply["gpu"] is None
    assert 0 < reply["memory"]["available_bytes"] <= reply["memory"]["total_bytes"]


def test_the_daemon_s_own_starter_starts_it_and_sees_it_leave(interpreter: str) -> None:
    process = HostProcess(Start(interpreter, "onnxruntime", {}, reserve_bytes=0, hello_s=LIMIT_S))
    assert process.about["python"] == interpreters.version(interpreter)
    assert process.exchange("quit", {}, LIMIT_S)["ok"]
    assert process.kill(LIMIT_S) == "exit status 0"


def test_a_loaded_model_says_what_it_answers(host: StartedHost, tmp_path: Path) -> None:
    reply = host.ask("load", **load_request(tiny_file(tmp_path)))
    assert reply["ok"], reply
    assert (reply["classes"], reply["embedding_width"], reply["input_dtype"]) == (CLASSES, PIXELS, "float32")
    assert reply["max_batch"] is None
    assert reply["cost_bytes"] >= 0
    assert reply["available_bytes"] > 0
    assert reply["scratch_bytes"] is None


@pytest.mark.parametrize("count", [1, 2, 7])
def test_logits_and_embedding_are_those_worked_out_by_hand(host: StartedHost, tmp_path: Path, count: int) -> None:
    request = load_request(tiny_file(tmp_path))
    assert host.ask("load", **request)["ok"]
    batch = images(count)
    logits, embedding = host.infer(request["model"], batch)
    assert logits == pytest.approx(batch.reshape(count, PIXELS) @ WEIGHTS, abs=1e-5)
    assert embedding is not None
    assert np.array_equal(embedding, batch.reshape(count, PIXELS))


def test_a_model_without_an_embedding_has_none(host: StartedHost, tmp_path: Path) -> None:
    request = load_request(tiny_file(tmp_path, embedding=False))
    assert host.ask("load", **request)["embedding_width"] is None
    logits, embedding = host.infer(request["model"], images(1))
    assert (logits.shape, embedding) == ((1, CLASSES), None)


def test_a_starter_model_answers_as_it_does_in_process(host: StartedHost) -> None:
    path = STARTER / "s.onnx"
    request = load_request(path, STARTER_CLASSES, STARTER_PX)
    reply = host.ask("load", **request)
    assert reply["ok"], reply
    batch = np.random.default_rng(0).uniform(-2, 2, (3, 3, *STARTER_PX)).astype(np.float32)
    logits, embedding = host.infer(request["model"], batch, output_bytes=1 << 16)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = session.run(["logits", "embedding"], {session.get_inputs()[0].name: batch})
    assert logits == pytest.approx(expected[0], abs=1e-4)
    assert embedding == pytest.approx(expected[1], abs=1e-4)


def test_two_models_do_not_mix_and_one_that_was_unloaded_is_gone(host: StartedHost, tmp_path: Path) -> None:
    first = load_request(tiny_file(tmp_path))
    assert host.ask("load", **first)["ok"]
    second = load_request(tiny_file(tmp_path, -WEIGHTS))
    assert host.ask("load", **second)["ok"]
    batch = images(3)
    assert np.array_equal(host.infer(first["model"], batch)[0], -host.infer(second["model"], batch)[0])
    assert host.ask("unload", model=first["model"])["ok"]
    refused = host.ask("unload", model=first["model"])
    assert (refused["ok"], refused["code"]) == (False, "bad-request")
    assert host.infer(second["model"], batch)[0].shape == (3, CLASSES)


def test_loading_what_is_loaded_answers_as_before(host: StartedHost, tmp_path: Path) -> None:
    request = load_request(tiny_file(tmp_path))
    first, second = host.ask("load", **request), host.ask("load", **request)
    assert first.pop("id") != second.pop("id")
    assert first == second


def test_shared_memory_that_grew_is_mapped_anew(fresh: StartedHost, tmp_path: Path) -> None:
    assert fresh.hello()["ok"]
    request = load_request(tiny_file(tmp_path))
    assert fresh.ask("load", **request)["ok"]
    batch = images(20_000)  # 1.44 MB
    before = fresh.memory.size
    assert before < batch.nbytes
    logits, _ = fresh.infer(request["model"], batch, output_bytes=4 * 20_000 * (CLASSES + PIXELS))
    assert fresh.memory.size > before
    assert logits == pytest.approx(batch.reshape(-1, PIXELS) @ WEIGHTS, abs=1e-4)
    assert fresh.infer(request["model"], images(1))[0].shape == (1, CLASSES), "what was mapped before still serves"


def test_a_ping_is_answered(host: StartedHost) -> None:
    assert host.ask("ping")["ok"]


def test_quit_is_answered_and_ends_it(fresh: StartedHost) -> None:
    assert fresh.hello()["ok"]
    assert fresh.ask("quit")["ok"]
    assert fresh.ended() == (0, "")


def test_it_ends_when_the_daemon_hangs_up(fresh: StartedHost) -> None:
    assert fresh.hello()["ok"]
    fresh.hang_up()
    assert fresh.ended() == (0, "")


def test_every_module_that_the_host_may_import_is_in_its_library(interpreter: str) -> None:
    command = [interpreter, "-I", "-W", "error", "-c", "import " + ", ".join(sorted(LIBRARY))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
