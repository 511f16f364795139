"""What an ONNX file takes, answers and computes is read from its bytes, and outputs are added to them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jetsel.zoo import STARTER, scan
from jetsel.zoo.onnx_graph import FLOAT, Graph, Node, Value, read_graph, with_alias, with_output, with_outputs
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.unit.zoo.making import TENSOR, field, onnx_file, varint

WEIGHTS = np.arange(2 * PIXELS, dtype=np.float32).reshape(PIXELS, 2)
MODEL = matrix_model(WEIGHTS)


def graph_of(tmp_path: Path, content: bytes) -> Graph:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    return read_graph(path)


def test_a_model_of_one_matrix(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, MODEL)
    assert graph.inputs == [Value("images", FLOAT, (None, 3, HEIGHT_PX, WIDTH_PX))]
    assert graph.outputs == [Value("logits", FLOAT, (None, 2)), Value("embedding", FLOAT, (None, PIXELS))]
    assert graph.nodes == [
        Node("Flatten", "", ("images",), ("embedding",), False),
        Node("MatMul", "", ("embedding", "weights"), ("logits",), False),
    ]
    assert graph.initializers == {"weights": (FLOAT, (PIXELS, 2))}
    assert (graph.parameters, graph.has_functions) == (2 * PIXELS, False)


def test_packed_dimensions_and_weights_among_the_inputs(tmp_path: Path) -> None:
    # Packed: one field of bytes, 300 = 0xAC 0x02 and 2. An old file lists its weights as inputs too.
    tensor = field(1, varint(300) + varint(2)) + field(2, FLOAT) + field(8, b"w")
    graph = graph_of(tmp_path, onnx_file(field(5, tensor) + field(11, field(1, b"w")) + field(11, field(1, b"x"))))
    assert graph.initializers == {"w": (FLOAT, (300, 2))}
    assert graph.inputs == [Value("x", None, None)]


def test_shapes_are_no_parameters(tmp_path: Path) -> None:
    whole_numbers = field(1, 4) + field(2, 7) + field(8, b"shape")
    half = field(1, 5) + field(2, 10) + field(8, b"half")
    assert graph_of(tmp_path, onnx_file(field(5, whole_numbers) + field(5, half))).parameters == 5


def test_graphs_inside_a_node_and_functions_are_seen(tmp_path: Path) -> None:
    branch = field(5, field(6, field(5, TENSOR))) + field(4, b"If") + field(7, b"ai.onnx")
    graph = graph_of(tmp_path, onnx_file(field(1, branch)) + field(25, b""))
    assert graph.nodes == [Node("If", "ai.onnx", (), (), True)]
    assert graph.has_functions


def test_the_starter_familys_parameters(tmp_path: Path) -> None:
    for model in scan([STARTER]).families["starter"].models:
        assert read_graph(model.path).parameters == model.manifest.parameters


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"no model at all", field(1, 7), MODEL[:-3]):
        with pytest.raises(ValueError):
            graph_of(tmp_path, content)
    with pytest.raises(ValueError, match="not UTF-8"):
        graph_of(tmp_path, onnx_file(field(11, field(1, b"\xff"))))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(MODEL)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        graph_of(tmp_path, bytes(content))


def run(content: bytes, *outputs: str) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    batch = np.random.default_rng(0).standard_normal((2, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)
    found = session.run(list(outputs), {"images": batch})
    np.testing.assert_allclose(found[0], batch.reshape(2, -1) @ WEIGHTS, rtol=1e-4, atol=1e-3)
    return found


def test_an_output_added_under_another_name_answers_the_same(tmp_path: Path) -> None:
    content = matrix_model(WEIGHTS, logits_name="scores") + with_alias("scores", "logits")
    first, second = run(content, "scores", "logits")
    np.testing.assert_array_equal(first, second)
    assert [output.name for output in graph_of(tmp_path, content).outputs] == ["scores", "embedding", "logits"]


def test_a_tensor_inside_becomes_an_output() -> None:
    softmax = field(1, b"logits") + field(2, b"shares") + field(4, b"Softmax")
    bare = matrix_model(WEIGHTS, embedding=False)
    shares = run(bare + field(7, field(1, softmax)) + with_outputs(["shares"]), "logits", "shares")[1]
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    assert run(bare + with_outputs(["embedding"]), "logits", "embedding")[1].shape == (2, PIXELS)
    assert run(bare + with_output("embedding"), "logits", "embedding")[1].shape == (2, PIXELS)
