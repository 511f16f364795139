"""What one photograph costs: the multiply-accumulates of a graph's convolutions and matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jetsel.errors import ManifestError
from jetsel.zoo.onnx_graph import Graph, Node

Shape = tuple[int, ...]

_OURS = {"", "ai.onnx"}  # the domain of ONNX's own operators
_OPERANDS = {  # operator: where the two factors stand among its inputs
    "Conv": (0, 1),
    "ConvInteger": (0, 1),
    "QLinearConv": (0, 3),
    "ConvTranspose": (0, 1),
    "Gemm": (0, 1),
    "MatMul": (0, 1),
    "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3),
}
_UNCOUNTED = {"Einsum", "Attention", "LSTM", "GRU", "RNN", "DeformConv", "Scan"}


def uncountable(graph: Graph) -> str | None:
    """Say what of the graph multiplies in a way that is not counted here, None where nothing does."""
    if graph.has_functions:
        return "functions of its own"
    for node in graph.nodes:
        if node.has_graphs:
            return f"a graph inside its {node.kind} operation"
        if node.kind in _UNCOUNTED or node.domain not in _OURS:
            return f"its operation {node.domain or 'ai.onnx'}.{node.kind}"
    return None


def tensors_to_shape(graph: Graph) -> list[str]:
    """Return the tensors whose shapes `multiply_accumulates` needs and the file does not say, each once.

    Raises ManifestError where an operation is not whole.
    """
    known = graph.initializers.keys() | {value.name for value in graph.inputs}
    names = (name for node in _products(graph) for name in (*_factors(node), node.outputs[0]))
    return list(dict.fromkeys(name for name in names if name not in known))


def multiply_accumulates(graph: Graph, shapes: Mapping[str, Shape]) -> int:
    """Count those of one run; additions of biases, activations and poolings are none.

    shapes: of `tensors_to_shape` and of the graph's inputs, in a run of one photograph.
    """
    known = {**{name: dims for name, (_, dims) in graph.initializers.items()}, **shapes}
    total = 0
    for node in _products(graph):
        left, right = _factors(node)
        total += _of_one(node, known[left], known[right], known[node.outputs[0]])
    return total


def _of_one(node: Node, left: Shape, right: Shape, output: Shape) -> int:
    if "ConvTranspose" in node.kind:  # right: (in, out / groups, kernel): each input goes to this many outputs
        return math.prod(left) * math.prod(right[1:])
    if "Conv" in node.kind:  # right: (out, in / groups, kernel): each output comes from this many inputs
        return math.prod(output) * math.prod(right[1:])
    if node.kind == "Gemm":  # either factor may be transposed: (m, k) has m * k numbers all the same
        return math.prod(output) * (math.prod(left) // output[0])
    return math.prod(output) * left[-1]


def _products(graph: Graph) -> list[Node]:
    found = [node for node in graph.nodes if node.kind in _OPERANDS and node.domain in _OURS]
    for node in found:
        if len(node.inputs) <= max(_OPERANDS[node.kind]) or not node.outputs:
            raise ManifestError(f"its operation {node.kind} lacks a factor or an output: export the model again")
    return found


def _factors(node: Node) -> tuple[str, str]:
    first, second = _OPERANDS[node.kind]
    return node.inputs[first], node.inputs[second]
