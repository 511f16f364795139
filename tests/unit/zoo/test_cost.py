"""Multiply-accumulates, worked by hand and against what the starter family's manifests say."""

from __future__ import annotations

import pytest

from jetsel.engines.shapes import shapes_in
from jetsel.zoo import STARTER, Model, scan
from jetsel.zoo.cost import multiply_accumulates, tensors_to_shape, uncountable
from jetsel.zoo.onnx_graph import FLOAT, Graph, Node, Value, read_graph, with_outputs

MODELS = scan([STARTER]).families["starter"].models


def node(kind: str, *inputs: str, domain: str = "") -> Node:
    return Node(kind, domain, inputs, ("out",), False)


def graph(*nodes: Node) -> Graph:
    weights = {"w": (FLOAT, (8, 3, 5, 5)), "m": (FLOAT, (7, 9))}
    return Graph(inputs=[Value("x", FLOAT, None)], nodes=list(nodes), initializers=weights)


def test_a_convolution_reads_its_kernel_for_each_number_that_it_gives() -> None:
    # 8 x 10 x 10 numbers, each of 3 x 5 x 5 products.
    shapes = {"x": (1, 3, 20, 20), "out": (1, 8, 10, 10)}
    assert multiply_accumulates(graph(node("Conv", "x", "w")), shapes) == 800 * 75
    assert multiply_accumulates(graph(node("QLinearConv", "x", "s", "z", "w")), shapes) == 800 * 75


def test_a_transposed_convolution_writes_its_kernel_for_each_number_that_it_reads() -> None:
    # 8 x 10 x 10 numbers, each into 3 x 5 x 5 others.
    shapes = {"x": (1, 8, 10, 10), "out": (1, 3, 24, 24)}
    assert multiply_accumulates(graph(node("ConvTranspose", "x", "w")), shapes) == 800 * 75


def test_matrix_products_of_any_batch_and_transposition() -> None:
    # (4, 7) times (7, 9): 36 numbers of 7 products; transposed, the first is (7, 4).
    assert multiply_accumulates(graph(node("MatMul", "x", "m")), {"x": (4, 7), "out": (4, 9)}) == 36 * 7
    assert multiply_accumulates(graph(node("Gemm", "x", "m")), {"x": (7, 4), "out": (4, 9)}) == 36 * 7
    attention = {"x": (1, 2, 5, 7), "y": (1, 2, 7, 5), "out": (1, 2, 5, 5)}
    assert multiply_accumulates(graph(node("MatMul", "x", "y")), attention) == 2 * 5 * 5 * 7


def test_what_adds_pools_and_activates_is_none() -> None:
    assert multiply_accumulates(graph(node("Add", "x", "x"), node("Relu", "x"), node("MaxPool", "x")), {}) == 0


def test_only_shapes_that_the_file_does_not_say_are_asked_for() -> None:
    two = graph(Node("Conv", "", ("x", "w"), ("a",), False), Node("MatMul", "", ("a", "b"), ("c",), False))
    assert tensors_to_shape(two) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ([node("LSTM", "x", "w")], "ai.onnx.LSTM"),
        ([node("FusedConv", "x", "w", domain="com.microsoft")], "com.microsoft.FusedConv"),
        ([Node("If", "", ("x",), ("y",), True)], "inside its If"),
    ],
)
def test_what_cannot_be_counted_is_named(nodes: list[Node], what: str) -> None:
    assert what in (uncountable(graph(*nodes)) or "")
    assert uncountable(graph(node("Conv", "x", "w"))) is None
    assert uncountable(Graph(has_functions=True)) == "functions of its own"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.manifest.name)
def test_the_starter_familys_are_those_that_torch_counted(model: Model) -> None:
    found = read_graph(model.path)
    wanted = tensors_to_shape(found)
    there = {value.name for value in found.outputs}
    content = model.path.read_bytes() + with_outputs(name for name in wanted if name not in there)
    spec = model.manifest.input
    shapes = shapes_in(content, wanted, (1, 3, spec.height_px, spec.width_px))
    assert multiply_accumulates(found, shapes) == model.manifest.multiply_accumulates
