"""A request that cannot be met is refused with a code and a repair, and the next one is served."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.tiny import matrix_model
from tests.host.bench import COUNTING, Bench, pixels

NOT_FINITE = np.where(np.arange(COUNTING.size).reshape(COUNTING.shape) == 5, np.inf, COUNTING).astype(np.float32)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
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
    bench: Bench, tmp_path: Path, content: bytes, changes: dict[str, Any], code: str, said: str
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    reply = bench.load_file(path, 2, **changes)
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
def test_a_run_that_cannot_be_is_refused(bench: Bench, changes: dict[str, Any], code: str) -> None:
    good = {"model": 1, "input": {"offset": 0, "shape": [1, 3, 2, 3]}, "output": {"offset": 1024, "bytes": 1024}}
    reply = bench.process.exchange("infer", {**good, **changes}, 60)
    assert (reply["ok"], reply["code"]) == (False, code), reply
