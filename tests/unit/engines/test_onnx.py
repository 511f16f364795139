"""ONNX Runtime in process: a run for which there is no memory is told from one that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.onnx import OnnxEngine
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model

CLASSES = 100_000
RUNS_SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from jetsel.engines.onnx import OnnxEngine

engine = OnnxEngine("wide", Path(sys.argv[1]), concurrency=1, threads=1)
batch = np.zeros((2000, 3, int(sys.argv[2]), int(sys.argv[3])), np.float32)
engine.infer(batch[:1])
held_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held_bytes + 50_000_000,) * 2)
try:
    engine.infer(batch)  # its logits alone are 800 MB
except MemoryError as error:
    print(error)
print(engine.infer(batch[:1]).logits.shape)
"""


def test_a_run_that_gets_no_memory_is_a_memory_error_and_the_next_is_served(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    path.write_bytes(matrix_model(np.ones((PIXELS, CLASSES), np.float32), embedding=False))
    command = [sys.executable, "-c", RUNS_SHORT_OF_MEMORY, str(path), str(HEIGHT_PX), str(WIDTH_PX)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refused, served = done.stdout.splitlines()
    assert "wide: " in refused
    assert "2000 images" in refused
    assert served == f"(1, {CLASSES})"


@pytest.mark.parametrize(("kind", "repair"), [("IR version", "set its ir_version to"), ("Opset", "opset_version=")])
def test_a_file_that_is_newer_than_this_onnx_runtime_names_both_versions(
    tmp_path: Path, kind: str, repair: str
) -> None:
    """The repair is then done: with the version that the message names, the file loads."""
    model = onnx.ModelProto.FromString(matrix_model(np.ones((PIXELS, 3), np.float32)))
    path = tmp_path / "m.onnx"
    if kind == "Opset":
        model.opset_import[0].version = 99
    else:
        model.ir_version = 99
    path.write_bytes(model.SerializeToString())
    with pytest.raises(EngineFailedError, match=rf"its {kind} is 99, .* reads up to \d+: .*{repair}") as raised:
        OnnxEngine("m", path, concurrency=1, threads=1)
    newest = int(str(raised.value).partition("reads up to ")[2].partition(":")[0])
    if kind == "Opset":
        model.opset_import[0].version = newest
    else:
        model.ir_version = newest
    path.write_bytes(model.SerializeToString())
    OnnxEngine("m", path, concurrency=1, threads=1)
