"""Which interpreter hosts what where none is set, in which environment, and what is told where a module is missing."""

import sys
from pathlib import Path

import pytest

import jetsel
from jetsel.engines import EngineFailedError
from jetsel.engines.hosting.interpreters import default, environment
from jetsel.engines.hosting.process import HostProcess, HostStart, query_host
from jetsel.engines.hosting.residents import HostHistory, Rules
from tests import python36
from tests.doubles.interpreter import make_interpreter
from tests.waiting import until


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t186ref", "python3.6"),
        ("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic", "python3.10"),
        ("# R99 (release), REVISION: 1.0", "python3"),
        ("no release", "python3"),
        (None, "python3"),
    ],
)
def test_tensorrt_runs_under_the_python_that_jetpack_brings_it_for(
    tmp_path: Path, release: str | None, expected: str
) -> None:
    for name in ("python3", "python3.6", "python3.10"):
        (tmp_path / name).touch()
    if release is not None:
        (tmp_path / "release").write_text(release)
    assert default("tensorrt", tmp_path / "release", tmp_path) == str(tmp_path / expected)
    assert default("onnxruntime", tmp_path / "release", tmp_path) == sys.executable


def test_the_owners_environment_stands_and_a_jetson_gets_what_numpy_needs() -> None:
    assert environment({"OPENBLAS_NUM_THREADS": "4", "HOME": "/h"}, "x86_64") == {
        "OPENBLAS_NUM_THREADS": "4",
        "CUDA_MODULE_LOADING": "LAZY",
        "HOME": "/h",
    }
    assert environment({}, "aarch64")["OPENBLAS_CORETYPE"] == "ARMV8"


def test_a_host_says_what_it_has_and_what_it_lacks(tmp_path: Path) -> None:
    about = query_host(HostStart(str(make_interpreter(tmp_path / "whole", "8.2")), "tensorrt"))
    gpu = {"name": "NVIDIA Tegra X2", "compute_capability": "6.2", "is_integrated": True, "fast_int8": False}
    assert (about["backend"], about["version"], about["libraries"]["cuda"]) == ("tensorrt", "8.2.1.8", "10.2")
    assert about["gpu"] == gpu
    bare = make_interpreter(tmp_path / "bare", None, pycuda=False)
    with pytest.raises(EngineFailedError, match=r"tensorrt \(ModuleNotFoundError.*pycuda \(.*apt install"):
        query_host(HostStart(str(bare), "tensorrt"))


def test_each_start_waits_twice_as_long_up_to_a_limit_and_old_deaths_do_not_count() -> None:
    history = HostHistory(Rules(first_pause_s=0.1, longest_pause_s=0.5, window_s=10.0))
    pauses = []
    for at_s in (0.0, 1.0, 2.0, 3.0, 4.0, 13.5, 30.0):
        history.add_end("", at_s)
        pauses.append(history.pause_s)
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.5, 0.1, 0.0]


def test_what_it_started_is_killed_with_it(tmp_path: Path) -> None:
    script, file = tmp_path / "script", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {file}\nwait\n")
    script.chmod(0o755)

    def stopped() -> str | None:
        return "stopped" if file.exists() and file.read_text() else None

    with pytest.raises(EngineFailedError, match=r"stopped \(ended by SIGKILL\)"):
        HostProcess(HostStart(str(script), "tensorrt"), stopped)
    pid = file.read_text().strip()
    until(lambda: not Path(f"/proc/{pid}/fd/0").exists())


HOST = Path(jetsel.__file__).parent / "engines" / "host"


def test_the_host_uses_only_what_python_36_has() -> None:
    assert {path.name: found for path in HOST.glob("*.py") if (found := python36.findings(path))} == {}
