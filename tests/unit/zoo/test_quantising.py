"""A graph in 8 bits, by ranges that are known or by ONNX Runtime's quantiser, nearly answers as before."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from jetsel.base.errors import CalibrationError
from jetsel.train.optimize.compress import int8, with_fixed_size
from jetsel.zoo import STARTER
from jetsel.zoo.efficientnet_lite import graph_of
from jetsel.zoo.onnx_model import read_model
from jetsel.zoo.quantising import quantise, tensors_to_quantise
from tests.unit.zoo.networks import lite_tensors

SHOWN = np.random.default_rng(5).normal(size=(16, 3, 64, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def graph() -> ModelProto:
    return with_fixed_size(read_model(STARTER / "s.onnx"), 64, 64)


def values(model: ModelProto, names: list[str]) -> list[NDArray[np.float32]]:
    """What these tensors are where SHOWN is the input."""
    opened = ModelProto()
    opened.CopyFrom(model)
    del opened.graph.output[:]
    opened.graph.output.extend(helper.make_tensor_value_info(name, 1, None) for name in names)
    session = onnxruntime.InferenceSession(opened.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[NDArray[np.float32]] = session.run(names, {model.graph.input[0].name: SHOWN})
    return found


def ranges(graph: ModelProto) -> dict[str, tuple[float, float]]:
    given, *others = tensors_to_quantise(graph)
    seen = [SHOWN, *values(graph, others)]
    return {name: (float(one.min()), float(one.max())) for name, one in zip([given, *others], seen, strict=True)}


@pytest.mark.parametrize(
    ("by", "symmetric"),
    [("known ranges", False), ("known ranges", True), ("ONNX Runtime", False), ("ONNX Runtime", True)],
)
def test_it_answers_nearly_as_before_from_eight_bit_weights_alone(graph: ModelProto, by: str, symmetric: bool) -> None:
    is_ours = by == "known ranges"
    made = quantise(graph, ranges(graph), symmetric=symmetric) if is_ours else int8(graph, SHOWN, symmetric=symmetric)
    (before,), (after,) = values(graph, ["logits"]), values(made, ["logits"])
    assert 0 < np.abs(after - before).mean() < 0.1 * np.ptp(before)
    assert len(made.SerializeToString()) < 0.3 * len(graph.SerializeToString())
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    assert {numbers.dtype.name for numbers in weights.values() if numbers.ndim > 1} == {"int8"}
    names = [one for one in weights if one.endswith((".zero", "zero_point")) and weights[one].ndim == 0]
    assert {weights[name].dtype.name for name in names} == ({"int8"} if symmetric else {"uint8"})
    assert all(weights[name] == 0 for name in names) == symmetric
    if is_ours:
        biases = {weights[name].dtype.name for name in weights if name.startswith("head.bias") and weights[name].ndim}
        assert ("int32" in biases) != symmetric, "TensorRT has no biases of 32-bit integers"


def gemm(weight: list[list[float]], bias: list[float]) -> ModelProto:
    """Return a model whose logits are its input (n, 2) times these weights (classes, 2), and the bias."""
    constants = {"weight": np.array(weight, np.float32), "bias": np.array(bias, np.float32)}
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["input", "weight", "bias"], ["logits"], transB=1)],
        "gemm",
        [helper.make_tensor_value_info("input", 1, ["n", 2])],
        [helper.make_tensor_value_info("logits", 1, ["n", len(bias)])],
        [numpy_helper.from_array(numbers, name) for name, numbers in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_numbers_are_rounded_to_the_nearest_step_of_the_range_that_is_given() -> None:
    """Worked by hand: a range of -1 to 1.55 in 255 steps of 0.01, a weight of 0.635 as 127 steps of 0.005."""
    model = gemm([[0.635, -0.0024]], [0.25])
    made = quantise(model, {"input": (-1.0, 1.55)}, symmetric=False)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    given = np.array([[0.504, 1.0], [9.0, 0.0]], np.float32)  # 0.50; beyond the range: 1.55
    (found,) = session.run(["logits"], {"input": given})
    assert found.ravel() == pytest.approx([0.50 * 0.635 + 0.25, 1.55 * 0.635 + 0.25], abs=1e-4)


@pytest.mark.parametrize(("least", "level"), [(-0.918, 92), (-0.912, 91)])
def test_the_zero_point_is_the_nearest_level(least: float, level: int) -> None:
    """In 255 steps of 0.01, 0 is 91.8 steps above the least value, or 91.2."""
    made = quantise(gemm([[1.0, 1.0]], [0.0]), {"input": (least, least + 2.55)}, symmetric=False)
    (zero,) = (tensor for tensor in made.graph.initializer if tensor.name == "input.zero")
    assert numpy_helper.to_array(zero) == level


def test_a_bias_beyond_32_bits_widens_the_steps_of_its_own_channel() -> None:
    """Beside weights of 1e-9 and inputs in 255 steps up to 2.55, a bias of 1.5 is 1.9e13 steps; 32 bits hold 2.1e9."""
    model = gemm([[1e-9, 1e-9], [0.635, 0.0], [1e-9, 0.0]], [1.5, 0.25, -1.5])
    made = quantise(model, {"input": (0.0, 2.55)}, symmetric=False)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["logits"], {"input": np.array([[1.0, 2.55]], np.float32)})
    assert found.ravel() == pytest.approx([1.5, 0.635 + 0.25, -1.5], abs=1e-4)


def test_operators_are_fused_so_that_no_convolution_computes_in_float(tmp_path: Path) -> None:
    graph = graph_of(lite_tensors(), "lite0")
    limits = dict.fromkeys(tensors_to_quantise(graph), (0.0, 6.0))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    content = quantise(graph, limits, symmetric=False).SerializeToString()
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    fused = ModelProto.FromString((tmp_path / "fused.onnx").read_bytes())
    kinds = [node.op_type for node in fused.graph.node]
    assert kinds.count("QLinearConv") == sum(node.op_type == "Conv" for node in graph.graph.node)
    assert not {"Conv", "Clip", "Add", "Gemm"} & set(kinds)


def test_what_has_nothing_to_quantise_is_told_so() -> None:
    node = helper.make_node("ReduceMean", ["image"], ["logits"], axes=[2, 3], keepdims=0)
    takes = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 64, 64])
    gives = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    plain = helper.make_model(
        helper.make_graph([node], "mean", [takes], [gives]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    with pytest.raises(CalibrationError, match="use another method"):
        int8(plain, SHOWN, symmetric=False)


def test_an_operator_that_cannot_be_run_to_find_ranges_is_named(graph: ModelProto) -> None:
    own = ModelProto()
    own.CopyFrom(graph)
    next(node for node in own.graph.node if node.op_type == "Relu").op_type = "OwnersRelu"
    with pytest.raises(CalibrationError, match=r"cannot be quantised: .*OwnersRelu.*plain convolutions"):
        int8(own, SHOWN, symmetric=False)
