"""Quantise a graph to 8 bits with known activation ranges, in seconds and without images.

The scheme is that of Jacob et al. (CVPR 2018, section 2): a scale and a zero point for each activation tensor, a scale
for each output channel of symmetric weights, and biases of 32 bits. QuantizeLinear and DequantizeLinear nodes express
it, which ONNX Runtime and TensorRT fuse into 8-bit operators.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

from jetsel.zoo.onnx_model import drop_unused_weights

RECIPE = "8 bits 1"  # must be raised with each change after which the same graph and ranges give other numbers

Ranges = Mapping[str, tuple[float, float]]  # tensor -> its least and largest value

_WITH_WEIGHTS = ("Conv", "Gemm")
_BOUNDS = ("Clip", "Relu")


def tensors_to_quantise(model: ModelProto) -> list[str]:
    """Return the tensors whose ranges `quantise` needs, in the graph's order.

    These are the input, inputs of convolutions and dense layers, and outputs of convolutions and sums after clipping.
    """
    nodes = model.graph.node
    clipped_later = {node.input[0] for node in nodes if node.op_type in _BOUNDS}
    weighted_inputs = {node.input[0] for node in nodes if node.op_type in _WITH_WEIGHTS}
    names = [model.graph.input[0].name]
    for node in nodes:
        (name, *_) = node.output
        is_result = node.op_type in ("Conv", "Add", *_BOUNDS) and name not in clipped_later
        if is_result or name in weighted_inputs:
            names.append(name)
    return names


def quantise(model: ModelProto, ranges: Ranges, *, symmetric: bool) -> ModelProto:
    """Return the model with its convolutions and dense layers in 8 bits.

    model: its Conv and Gemm nodes have constant weights, output channels first, and a bias. ranges: of each quantised
    tensor. symmetric: signed activations around 0 and float biases, which TensorRT demands; ONNX Runtime is faster with
    unsigned activations. Raises KeyError if an input of Conv or Gemm has no range.
    """
    quantiser = _Quantiser(model, ranges, symmetric=symmetric)
    for value in model.graph.input:
        quantiser.split(value.name)
    for node in model.graph.node:
        quantiser.copy_node(node)
    drop_unused_weights(quantiser.made)
    return quantiser.made


class _Quantiser:
    """Copies a model, with QuantizeLinear and DequantizeLinear nodes (Q/DQ) added; the float weights stay, unused."""

    def __init__(self, model: ModelProto, ranges: Ranges, *, symmetric: bool) -> None:
        self.made = copy.deepcopy(model)
        self.made.graph.ClearField("node")
        self._symmetric = symmetric
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._scales = {name: _scale_and_zero_point(*limits, symmetric=symmetric) for name, limits in ranges.items()}

    def copy_node(self, node: NodeProto) -> None:
        """Copy a node; quantise the weights of a Conv or Gemm; add nodes (`split`) to quantise outputs with a range."""
        copied = copy.deepcopy(node)
        copied.input[:] = [_dequantised_name(name) if name in self._scales else name for name in node.input]
        if node.op_type in _WITH_WEIGHTS:
            copied.input[1:] = self._weights(*node.input)
        self.made.graph.node.append(copied)
        for name in node.output:
            self.split(name)

    def _weights(self, input_name: str, weight: str, bias: str) -> list[str]:
        """Add a node's quantised weights and bias, and return the names of the tensors that the node then reads."""
        kernel, bias_values = self._constants[weight], self._constants[bias]
        largest = np.abs(kernel.reshape(len(kernel), -1)).max(axis=1)
        scale = (np.maximum(largest, np.finfo(np.float32).tiny) / 127).astype(np.float32)
        if not self._symmetric:  # scales keep the bias below 2**30, so that sums fit 32 bits
            least_scale = np.abs(bias_values).astype(np.float64) / 2**30 / self._scales[input_name][0]
            scale = np.maximum(scale, least_scale).astype(np.float32)
        channel_scale = scale.reshape(-1, *[1] * (kernel.ndim - 1))
        self._add_dequantised(weight, np.clip(np.rint(kernel / channel_scale), -127, 127).astype(np.int8), scale)
        if self._symmetric:
            return [_dequantised_name(weight), bias]
        scale = scale * self._scales[input_name][0]
        bias_integers = np.rint(bias_values.astype(np.float64) / scale).astype(np.int32)
        self._add_dequantised(bias, bias_integers, scale)
        return [_dequantised_name(weight), _dequantised_name(bias)]

    def split(self, name: str) -> None:
        """Add nodes that quantise a tensor and dequantise it for the nodes that read it, if it has a range."""
        if name not in self._scales:
            return
        scale, zero = self._scales[name]
        parameters = [self._add_constant(f"{name}.scale", scale), self._add_constant(f"{name}.zero", zero)]
        self._add_node("QuantizeLinear", [name, *parameters], f"{name}.quantised")
        self._add_node("DequantizeLinear", [f"{name}.quantised", *parameters], _dequantised_name(name))

    def _add_dequantised(self, name: str, integers: NDArray[Any], scale: NDArray[np.float32]) -> None:
        """Add quantised weights, with a scale for each output channel, and the node that dequantises them."""
        constants = {"quantised": integers, "scale": scale, "zero": np.zeros(len(scale), integers.dtype)}
        names = [self._add_constant(f"{name}.{part}", values) for part, values in constants.items()]
        self._add_node("DequantizeLinear", names, _dequantised_name(name), axis=0)

    def _add_constant(self, name: str, values: Any) -> str:
        """Add a constant and return its name."""
        self.made.graph.initializer.append(numpy_helper.from_array(np.array(values), name))
        return name

    def _add_node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.made.graph.node.append(helper.make_node(operator, inputs, [output], name=output, **attributes))


def _dequantised_name(name: str) -> str:
    return f"{name}.dequantised"


def _scale_and_zero_point(least: float, largest: float, *, symmetric: bool) -> tuple[np.float32, Any]:
    """Return the scale and zero point for values between `least` and `largest`; 0 is always exact."""
    least, largest = min(float(least), 0.0), max(float(largest), 0.0)
    if symmetric:
        return np.float32(max(-least, largest, 1e-30) / 127), np.int8(0)
    scale = np.float32(max(largest - least, 1e-30) / 255)
    return scale, np.uint8(np.clip(np.rint(-least / scale), 0, 255))
