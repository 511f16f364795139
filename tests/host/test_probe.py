"""Under each Python the host says what that interpreter offers, and what it lacks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.host import interpreters
from tests.host.started import HOST


def probe(interpreter: str, backend: str) -> dict[str, Any]:
    """What the host prints of this interpreter."""
    command = [interpreter, "-I", str(HOST), "--probe", "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_an_interpreter_that_can_serve_is_usable(interpreter: str) -> None:
    found = probe(interpreter, "onnxruntime")
    assert (found["usable"], found["reason"], found["isolated"], found["gpu"]) == (True, None, True, None)
    assert (found["executable"], found["python"]) == (interpreter, interpreters.version(interpreter))
    for module in ("numpy", "onnxruntime"):
        assert found["modules"][module]["version"].count(".") >= 2
        assert found["modules"][module]["path"].endswith("__init__.py")
        assert found["modules"][module]["error"] is None


def test_an_interpreter_without_tensorrt_says_so(interpreter: str) -> None:
    found = probe(interpreter, "tensorrt")
    if found["modules"]["tensorrt"]["error"] is None:
        pytest.skip(f"{interpreter} has TensorRT")
    assert found["usable"] is False
    assert "tensorrt" in found["reason"]
    missing = found["modules"]["tensorrt"]
    assert (missing["version"], missing["path"]) == (None, None)
    assert "No module named 'tensorrt'" in missing["error"]
    assert found["modules"]["numpy"]["error"] is None


def test_without_its_socket_it_does_not_start(interpreter: str) -> None:
    done = subprocess.run([interpreter, "-I", str(HOST)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--fd is needed" in done.stderr
