"""Trying a model before it is added: what it needs without bound is rejected with a reason."""

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from jetsel.base.weights import Weights
from jetsel.engines import EngineFailedError, trying

N3 = ["n", 3]
MEAN = helper.make_node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=0)


def weights(folder: Path, nodes: list[NodeProto], **constants: object) -> Weights:
    """A model of the mean of each channel, and of these nodes after it."""
    graph = helper.make_graph(
        [MEAN, *nodes],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, N3)],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )
    path = folder / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return Weights("m", path, "0" * 64, 8, 8, 3)


def test_a_tensor_that_no_memory_holds_is_told(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["m"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Add", ["whole", "sides"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros", "axis"], ["sum"], keepdims=1),
        helper.make_node("Add", ["m", "sum"], ["logits"]),
    ]
    with pytest.raises(EngineFailedError, match="more memory than this machine"):
        trying.try_run(weights(tmp_path, nodes, sides=[10**15], axis=[0]), 1)


def test_probabilities_that_no_operator_shows_are_seen_by_their_range_on_several_images(tmp_path: Path) -> None:
    """Logits leave any range on stronger noise; a sigmoid, and shares of something, do not."""
    negative = helper.make_node("Neg", ["m"], ["minus"])
    power = helper.make_node("Pow", ["e", "minus"], ["power"])
    plus = helper.make_node("Add", ["one", "power"], ["plus"])
    sigmoid = [negative, power, plus, helper.make_node("Reciprocal", ["plus"], ["logits"])]
    squares = helper.make_node("Mul", ["m", "m"], ["squares"])
    shares = [
        squares,
        helper.make_node("ReduceSum", ["squares", "axis"], ["sum"]),
        helper.make_node("Div", ["squares", "sum"], ["ones"]),
        helper.make_node("Mul", ["ones", "hundred"], ["logits"]),
    ]
    for nodes, constants in (
        (sigmoid, {"e": np.float32(np.e), "one": np.float32(1)}),
        (shares, {"axis": [1], "hundred": np.float32(100)}),
    ):
        with pytest.raises(EngineFailedError, match="probabilities instead of logits"):
            trying.try_run(weights(tmp_path, nodes, **constants), 1)
    trying.try_run(weights(tmp_path, [helper.make_node("Mul", ["m", "one"], ["logits"])], one=np.float32(0.1)), 1)
