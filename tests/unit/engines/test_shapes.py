"""The shapes inside a model are those of a real run."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.shapes import shapes_in
from jetsel.zoo.onnx_graph import with_outputs
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model

MODEL = matrix_model(np.ones((PIXELS, 2), np.float32), embedding=False)
INPUT = (1, 3, HEIGHT_PX, WIDTH_PX)


def test_outputs_inside_the_graph_and_the_input() -> None:
    found = shapes_in(MODEL + with_outputs(["embedding"]), ["embedding", "logits"], INPUT)
    assert found == {"images": INPUT, "embedding": (1, PIXELS), "logits": (1, 2)}


def test_nothing_asked_is_the_input_alone() -> None:
    assert shapes_in(MODEL, [], INPUT) == {"images": INPUT}


@pytest.mark.parametrize("content", [b"no model", MODEL[:-9]])
def test_what_does_not_load_is_told(content: bytes) -> None:
    with pytest.raises(EngineFailedError, match="ONNX Runtime does not run the model"):
        shapes_in(content, ["logits"], INPUT)


def test_what_does_not_run_is_told() -> None:
    with pytest.raises(EngineFailedError, match="does not run the model"):
        shapes_in(MODEL, ["logits"], (1, 3, HEIGHT_PX, WIDTH_PX + 1))
