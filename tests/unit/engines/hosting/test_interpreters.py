"""Which interpreter hosts what where none is set, in which environment, and what is told where a module is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.hosting.interpreters import default, environment, repair
from jetsel.engines.hosting.process import HostStart, ask_about
from tests.doubles.interpreter import make_interpreter


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


def test_what_is_missing_is_told_with_the_commands_that_bring_it() -> None:
    said = "Python 3.6.9 does not import tensorrt (ModuleNotFoundError: x); pycuda (ModuleNotFoundError: y)"
    found = repair("/usr/bin/python3.6", said)
    assert "apt install python3-libnvinfer" in found
    assert "sudo env PATH=/usr/local/cuda/bin:$PATH /usr/bin/python3.6 -m pip install pycuda==2022.1" in found
    assert "--user" in found
    assert "pip install numpy " in repair("/p", "Python 3.10.1 does not import numpy (why)")


def test_a_host_says_what_it_has_and_what_it_lacks(tmp_path: Path) -> None:
    about = ask_about(HostStart(str(make_interpreter(tmp_path / "whole", "8.2")), "tensorrt"))
    assert (about["version"], about["gpu"]["compute_capability"]) == ("8.2.1.8", "6.2")
    bare = make_interpreter(tmp_path / "bare", None, pycuda=False)
    with pytest.raises(EngineFailedError, match=r"tensorrt \(ModuleNotFoundError.*pycuda \(.*apt install"):
        ask_about(HostStart(str(bare), "tensorrt"))
