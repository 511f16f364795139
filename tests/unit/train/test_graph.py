"""A graph is made plain for others to read, and answers as before."""

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from jetsel.base.errors import ManifestError
from jetsel.train.optimize.compress import with_fixed_size

DRAW = np.random.default_rng(4)


def answers(model: ModelProto, batch: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["logits"], {session.get_inputs()[0].name: batch})[0]


def same_padded(auto_pad: str, stride: int) -> ModelProto:
    """A convolution padded by the runtime, its weights kept in 16 bits and named again, and a mean over all places."""
    weights = DRAW.normal(size=(5, 3, 3, 3)).astype(np.float16)
    nodes = [
        helper.make_node("Cast", ["kept"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Identity", ["cast"], ["weights"]),
        helper.make_node("Conv", ["image", "weights"], ["seen"], auto_pad=auto_pad, strides=[stride, stride]),
        helper.make_node("ReduceMean", ["seen"], ["logits"], axes=[2, 3], keepdims=0),
    ]
    takes = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])
    gives = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 5])
    graph = helper.make_graph(nodes, "same", [takes], [gives], [numpy_helper.from_array(weights, "kept")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(
    ("auto_pad", "stride", "side"), [("SAME_UPPER", 2, 10), ("SAME_LOWER", 2, 10), ("SAME_UPPER", 1, 9)]
)
def test_padding_becomes_numbers_and_weights_float32(auto_pad: str, stride: int, side: int) -> None:
    model = same_padded(auto_pad, stride)
    batch = DRAW.normal(size=(2, 3, side, side)).astype(np.float32)
    plain = with_fixed_size(model, side, side)
    assert [node.op_type for node in plain.graph.node] == ["Conv", "ReduceMean"]
    assert "auto_pad" not in {attribute.name for attribute in plain.graph.node[0].attribute}
    np.testing.assert_allclose(answers(plain, batch), answers(model, batch), atol=1e-5)


def test_a_size_at_which_it_does_not_work_is_named() -> None:
    weights = numpy_helper.from_array(np.ones((3 * 8 * 8, 5), np.float32), "weights")
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
    ]
    takes = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])
    gives = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 5])
    graph = helper.make_graph(nodes, "dense", [takes], [gives], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with_fixed_size(model, 8, 8)
    with pytest.raises(ManifestError, match="does not work at 6 x 4 px"):
        with_fixed_size(model, 4, 6)
