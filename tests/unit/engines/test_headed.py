"""A model with a head of the owner's answers by its backbone's embedding, and says what is wrong with its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jetsel.base.weights import Head, HeadFile, Weights
from jetsel.engines import Backends, EngineFailedError
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model

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
