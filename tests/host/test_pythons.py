"""Under the Python of each board the host loads models and answers; under our own it refuses what cannot be met."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from jetsel.engines.hosting.process import HOST
from jetsel.zoo import STARTER
from tests.contract.tiny import matrix_model
from tests.doubles.interpreter import make_interpreter
from tests.host.bench import COUNTING, LIMIT_S, Bench, pixels

GENERATION_OF = {"3.6": "8.2", "3.8": "8.6", "3.10": "10", "3.12": "11"}  # JetPack 4.6.2, 5, 6 and 7


SETTING = "JETSEL_HOST_PYTHONS"
BOARDS = ("python3.6", "python3.8", "python3.10", "python3.12")  # JetPack 4.6, 5, 6 and 7


def found() -> list[str]:
    """Those that the setting names, else those of the boards that can serve; and always our own.

    Raises RuntimeError where one that is named cannot.
    """
    named = [name for name in os.environ.get(SETTING, "").split(os.pathsep) if name]
    if broken := [name for name in named if not _serves(name)]:
        raise RuntimeError(f"{SETTING}: {', '.join(broken)}: no Python with numpy and onnxruntime; run make test-host")
    usable = named or [name for name in BOARDS if _serves(name)]
    return [str(Path(shutil.which(name) or name).absolute()) for name in usable] + [sys.executable]


def short_name(interpreter: str) -> str:
    """The name of the environment that the interpreter stands in, or its own."""
    path = Path(interpreter)
    return path.parents[1].name if path.name.startswith("python") and len(path.parts) > 2 else interpreter


def version(interpreter: str) -> str:
    """The version of it, such as 3.6.15."""
    command = [interpreter, "-I", "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _serves(interpreter: str) -> bool:
    if shutil.which(interpreter) is None:
        return False
    command = [interpreter, "-I", "-c", "import numpy, onnxruntime"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module", params=found(), ids=short_name)
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bench(interpreter: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(interpreter, tmp_path, "onnxruntime")
    yield made
    made.leave()


def test_hello_says_who_answers(bench: Bench, interpreter: str) -> None:
    about = bench.process.about
    assert (about["backend"], about["gpu"]) == ("onnxruntime", None)
    assert about["python"] == version(interpreter)
    assert about["libraries"].keys() == {"numpy"}


def test_a_starter_model_answers_as_it_does_in_process(bench: Bench) -> None:
    path = STARTER / "s.onnx"
    assert bench.load_file(path, classes=100, input_px=[64, 64])["ok"]
    bench.region = bench.process.memory.allocate(1 << 20)
    batch = np.random.default_rng(0).uniform(-2, 2, (3, 3, 64, 64)).astype(np.float32)
    reply = bench.infer(batch)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    logits, embedding = session.run(["logits", "embedding"], {session.get_inputs()[0].name: batch})
    assert reply["logits"] == pytest.approx(logits, abs=1e-4)
    assert reply["embedding"] == pytest.approx(embedding, abs=1e-4)


def test_an_engine_of_the_boards_tensorrt_is_built_loaded_and_run(interpreter: str, tmp_path: Path) -> None:
    minor = version(interpreter).rpartition(".")[0]
    generation = GENERATION_OF.get(minor, "10")
    bench = Bench(make_interpreter(tmp_path / "python", generation, python=interpreter), tmp_path)
    assert bench.process.about["version"].startswith(f"{generation}.")
    assert bench.build(matrix_model(COUNTING))["ok"]
    assert bench.load()["ok"]
    assert bench.infer(pixels(1, 2))["logits"].tolist() == [[612, 630, 648, 666], [1224, 1260, 1296, 1332]]
    bench.leave()


def test_it_ends_when_the_daemon_hangs_up(interpreter: str, tmp_path: Path) -> None:
    bench = Bench(interpreter, tmp_path, "onnxruntime")
    bench.process.hang_up()
    assert bench.process.kill(LIMIT_S) == "exit status 0"


def test_signals_to_the_whole_group_do_not_end_it(bench: Bench) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(bench.process.pid, number)
    assert bench.process.exchange("ping", {}, LIMIT_S)["ok"]


def test_the_folder_runs_and_hides_no_library(interpreter: str) -> None:
    command = [interpreter, "-I", "-W", "error", str(HOST), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    names = {path.stem for path in HOST.glob("*.py")} - {"__init__", "__main__"}
    assert not names & sys.stdlib_module_names


NOT_FINITE = np.where(np.arange(COUNTING.size).reshape(COUNTING.shape) == 5, np.inf, COUNTING).astype(np.float32)


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Bench]:
    """A host in which one model serves, before the test and after it."""
    made = Bench(sys.executable, tmp_path, "onnxruntime")
    (tmp_path / "good.onnx").write_bytes(matrix_model(COUNTING))
    assert made.load_file(tmp_path / "good.onnx")["ok"]
    yield made
    assert made.infer(pixels(1))["logits"].tolist() == [[612, 630, 648, 666]]
    made.leave()


@pytest.mark.parametrize(
    ("content", "changes", "code", "said"),
    [
        pytest.param(matrix_model(COUNTING), {"sha256": "00" * 32}, "mismatch", "has changed", id="another hash"),
        pytest.param(matrix_model(COUNTING), {"classes": 5}, "bad-output", "has 5 labels", id="other labels"),
        pytest.param(matrix_model(COUNTING), {"input_px": [8, 8]}, "infer-failed", "failed", id="another input"),
        pytest.param(matrix_model(NOT_FINITE), {}, "bad-output", "not finite", id="an infinite weight"),
    ],
)
def test_a_model_of_no_use_is_refused(
    loaded: Bench, tmp_path: Path, content: bytes, changes: dict[str, Any], code: str, said: str
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    reply = loaded.load_file(path, 2, **changes)
    assert (reply["ok"], reply["code"]) == (False, code)
    assert said in reply["message"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"model": 7}, "bad-request", id="no such model"),
        pytest.param({"input": {"offset": 1 << 40, "shape": [1, 3, 2, 3]}}, "internal", id="outside"),
        pytest.param({"input": {"offset": 0, "shape": [1, 3, 2, 2]}}, "infer-failed", id="another shape"),
        pytest.param({"output": {"offset": 1024, "bytes": 12}}, "bad-output", id="too little room"),
    ],
)
def test_a_run_that_cannot_be_is_refused(loaded: Bench, changes: dict[str, Any], code: str) -> None:
    good = {"model": 1, "input": {"offset": 0, "shape": [1, 3, 2, 3]}, "output": {"offset": 1024, "bytes": 1024}}
    reply = loaded.process.exchange("infer", {**good, **changes}, 60)
    assert (reply["ok"], reply["code"]) == (False, code), reply
