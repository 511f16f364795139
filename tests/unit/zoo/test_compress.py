"""What is done to a file alone: it shrinks, and answers nearly as before."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from jetsel.base.errors import CalibrationError
from jetsel.zoo import STARTER
from jetsel.zoo.compress import int8
from jetsel.zoo.graph import for_size
from jetsel.zoo.onnx_model import read_model
from tests.unit.zoo.test_graph import answers

SHOWN = np.random.default_rng(5).normal(size=(16, 3, 64, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> ModelProto:
    return for_size(read_model(STARTER / "s.onnx"), 64, 64)


@pytest.mark.parametrize("symmetric", [False, True])
def test_eight_bits_answer_nearly_the_same_in_a_quarter_of_the_bytes(model: ModelProto, symmetric: bool) -> None:
    made = int8(model, SHOWN, symmetric=symmetric)
    assert len(made.SerializeToString()) < 0.3 * len(model.SerializeToString())
    before, after = answers(model, SHOWN), answers(made, SHOWN)
    assert np.abs(after - before).mean() < 0.1 * np.ptp(before)
    zeros = {
        int(numpy_helper.to_array(tensor).max())
        for tensor in made.graph.initializer
        if tensor.name.endswith("zero_point") and numpy_helper.to_array(tensor).ndim == 0
    }
    assert (zeros == {0}) == symmetric


def test_what_has_nothing_to_quantise_is_told_so() -> None:
    node = helper.make_node("ReduceMean", ["image"], ["logits"], axes=[2, 3], keepdims=0)
    takes = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 64, 64])
    gives = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([node], "mean", [takes], [gives])
    plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(CalibrationError, match="use another method"):
        int8(plain, SHOWN, symmetric=False)


def test_an_operator_that_cannot_be_run_to_find_ranges_is_named(model: ModelProto) -> None:
    own = ModelProto()
    own.CopyFrom(model)
    next(node for node in own.graph.node if node.op_type == "Relu").op_type = "OwnersRelu"
    with pytest.raises(CalibrationError, match=r"cannot be quantised: .*OwnersRelu.*plain convolutions"):
        int8(own, SHOWN, symmetric=False)
