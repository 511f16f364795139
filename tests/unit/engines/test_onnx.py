"""ONNX Runtime in process: a run for which there is no memory is told from one that fails."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from jetsel.base.weights import Head, HeadFile, Weights
from jetsel.engines import Backends, EngineFailedError
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

    def put(version: int) -> None:
        if kind == "Opset":
            model.opset_import[0].version = version
        else:
            model.ir_version = version
        path.write_bytes(model.SerializeToString())

    put(99)
    with pytest.raises(EngineFailedError, match=rf"its {kind} is 99, .* reads up to \d+: .*{repair}") as raised:
        OnnxEngine("m", path, concurrency=1, threads=1)
    put(int(str(raised.value).partition("reads up to ")[2].partition(":")[0]))
    OnnxEngine("m", path, concurrency=1, threads=1)


HEAD = Head(np.eye(PIXELS, 2, dtype=np.float32), np.array([0.5, -0.5], np.float32))


def weights(tmp_path: Path, head: bytes, **model: bool) -> Weights:
    path = tmp_path / "backbone.onnx"
    path.write_bytes(matrix_model(np.ones((PIXELS, 3), np.float32), **model))  # type: ignore[arg-type]
    (tmp_path / "head.npz").write_bytes(head)
    return Weights("owner", path, "0" * 64, HEIGHT_PX, WIDTH_PX, 2, HeadFile(tmp_path / "head.npz", 3))


def test_the_answer_is_the_embedding_times_the_head(tmp_path: Path) -> None:
    engine = Backends().open("onnxruntime", weights(tmp_path, HEAD.content()), concurrency=2, threads=1)
    batch = np.arange(2 * PIXELS, dtype=np.float32).reshape(2, 3, HEIGHT_PX, WIDTH_PX)
    found = engine.infer(batch)
    assert np.array_equal(found.logits, [[0.5, 0.5], [PIXELS + 0.5, PIXELS + 0.5]])
    assert (engine.name, engine.concurrency, engine.max_batch, engine.unavailable) == ("owner", 2, None, None)
    engine.close()
    with pytest.raises(EngineFailedError, match="it is closed"):
        engine.infer(batch)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"no file of numpy's", "head.npz: is not a head: .*; train it again"),
        (Head(HEAD.weights, np.zeros(3, np.float32)).content(), "do not match"),
        (Head(np.full((PIXELS, 2), np.nan, np.float32), HEAD.bias).content(), "not finite"),
    ],
)
def test_a_file_that_is_no_head_is_refused(tmp_path: Path, head: bytes, said: str) -> None:
    with pytest.raises(EngineFailedError, match=said):
        Backends().open("onnxruntime", weights(tmp_path, head), concurrency=1, threads=1)


def test_a_backbone_of_another_width_or_without_an_embedding_is_told(tmp_path: Path) -> None:
    for head, model in ((Head(np.eye(4, 2, dtype=np.float32), HEAD.bias), {}), (HEAD, {"embedding": False})):
        engine = Backends().open("onnxruntime", weights(tmp_path, head.content(), **model), concurrency=1, threads=1)
        with pytest.raises(EngineFailedError, match="gives no embedding for this head: train the head again"):
            engine.infer(np.zeros((1, 3, HEIGHT_PX, WIDTH_PX), np.float32))
