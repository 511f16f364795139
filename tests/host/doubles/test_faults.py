"""The faults that the doubles have on purpose, and the interpreters that have the doubles."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.interpreter import make_interpreter

Ask = Callable[..., Any]


@pytest.mark.parametrize(
    ("generation", "faults", "result"),
    [
        ("8.2", {"deserialize_none": True}, "no engine"),
        ("11", {"deserialize_none": {"after": 1}}, "1 runs, then no engine"),
        ("8.6", {"context_none": True}, "no context"),
        ("8.2", {"enqueue_false": {"after": 2, "times": 1}}, "2 runs, then refused"),
        ("10", {"enqueue_false": True}, "refused"),
        ("8.2", {"enqueue_error": {"after": 1}}, "1 runs, then LogicError"),
        ("11", {"nan_outputs": True}, "not a number"),
        ("8.2", {"mem_alloc_memory": True}, "MemoryError"),
        ("10", {"build_none": True}, "no plan"),
        ("8.2", {"cuda_initialization": True}, "RuntimeError"),
        ("8.2", {}, "3 runs"),
    ],
)
def test_each_fault_happens_when_it_is_asked_for(
    generation: str, faults: dict[str, Any], result: str, begin: Ask
) -> None:
    script = """
def result():
    plan = build(MODEL)
    if plan is None:
        return "no plan"
    for count in range(3):
        already = "{} runs, then ".format(count) if count else ""
        engine = load(plan)
        if engine is None:
            return already + "no engine"
        execution = engine.create_execution_context()
        if execution is None:
            return already + "no context"
        try:
            if np.isnan(run(engine, BATCH, execution)[0]).any():
                return already + "not a number"
        except AssertionError:
            return already + "refused"
        except cuda.Error as error:
            return already + type(error).__name__
    return "3 runs"
say(result())
"""
    ran = begin(generation, script, faults=faults)
    assert (json.loads(ran.stdout) if ran.stdout else ran.stderr.split("pycuda._driver.")[-1].split(":")[0]) == result


@pytest.mark.parametrize("module", ["tensorrt", "pycuda"])
def test_an_import_can_fail(module: str, begin: Ask) -> None:
    reason = "libnvinfer.so.8: cannot open shared object file: No such file or directory"
    ran = begin("8.2", "", faults={f"import_{module}": reason})
    assert ran.stderr.splitlines()[-1] == f"ImportError: {reason}"


def test_a_build_can_end_the_process(begin: Ask) -> None:
    ran = begin("8.2", "build(MODEL)", faults={"build_signal": int(signal.SIGSEGV)})
    assert ran.returncode == -signal.SIGSEGV


def test_a_fault_in_a_file_can_come_while_the_process_runs(pythons: dict[str, Path], tmp_path: Path) -> None:
    board = tmp_path / "board.json"
    board.write_text("{}")
    script = f"""
from trt_double.board import fault
print(fault("enqueue_ms"))
open({str(board)!r}, "w").write('{{"faults": {{"enqueue_ms": 7}}}}')
print(fault("enqueue_ms"))
"""
    environment = {**os.environ, "JETSEL_DOUBLE": str(board)}
    command = [str(pythons["8.2"]), "-I", "-c", script]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["None", "7"]


def test_an_interpreter_is_the_process_that_was_started(pythons: dict[str, Path]) -> None:
    reading, writing = os.pipe()
    script = f"import os, sys; os.write({writing}, b'%d' % os.getpid()); print(sys.flags.isolated, sys.prefix)"
    with subprocess.Popen(
        [str(pythons["10"]), "-I", "-c", script], pass_fds=(writing,), stdout=subprocess.PIPE, text=True
    ) as process:
        said = process.communicate()[0].split()
    assert os.read(reading, 100) == str(process.pid).encode()
    assert said == ["1", str(pythons["10"].parents[1])]
    os.close(reading)
    os.close(writing)


def test_an_interpreter_can_be_without_one_of_them(tmp_path: Path) -> None:
    script = "import importlib.util as util; print([bool(util.find_spec(name)) for name in ('tensorrt', 'numpy')])"
    bare = make_interpreter(tmp_path / "bare", None, python=sys.executable)
    assert subprocess.check_output([str(bare), "-I", "-c", script], text=True).strip() == "[False, True]"
    half = make_interpreter(tmp_path / "half", "8.2", pycuda=False)
    ran = subprocess.run(
        [str(half), "-I", "-c", "import tensorrt, pycuda"], capture_output=True, text=True, check=False
    )
    assert ran.stderr.splitlines()[-1].startswith("ModuleNotFoundError")


def test_a_hang_never_ends_the_stream(begin: Ask) -> None:
    script = """
import os
engine = load(build(MODEL))
execution, stream = engine.create_execution_context(), cuda.Stream()
shaped(execution, engine, BATCH.shape)
blocks = [cuda.mem_alloc(4096) for _ in names(engine)]
before = stream.is_done()
taken = enqueue(execution, engine, [int(block) for block in blocks], stream)
print(before, taken, stream.is_done(), flush=True)
os._exit(7)
"""
    ran = begin("8.2", script, faults={"enqueue_hang": True})
    assert (ran.returncode, ran.stdout) == (7, "True True False\n")
