"""Quantise a graph to 8 bits with activation ranges that are known: in seconds, without images.

The scheme is that of Jacob et al. (CVPR 2018, section 2): activations by a scale and a zero point for each tensor,
weights symmetric and by a scale for each output channel, biases of 32 bits, written as QuantizeLinear and
DequantizeLinear nodes, which ONNX Runtime and TensorRT fuse into 8-bit operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnx import ModelProto

RECIPE = "8 bits 1"
"""Raise it whenever the same graph and ranges give other numbers."""

Ranges = Mapping[str, tuple[float, float]]
"""Tensor -> the least and the largest value that it takes."""

_WITH_WEIGHTS = ("Conv", "Gemm")
_BOUNDS = ("Clip", "Relu")


def tensors(model: ModelProto) -> list[str]:
    """Return the tensors that `quantised` needs ranges of, in the graph's order.

    That is the input, what convolutions and dense layers read, and what convolutions and sums give, after their bounds.
    """
    nodes = model.graph.node
    bounded = {node.input[0] for node in nodes if node.op_type in _BOUNDS}
    read = {node.input[0] for node in nodes if node.op_type in _WITH_WEIGHTS}
    names = [model.graph.input[0].name]
    for node in nodes:
        (name, *_) = node.output
        is_whole = node.op_type in ("Conv", "Add", *_BOUNDS) and name not in bounded
        if is_whole or name in read:
            names.append(name)
    return names


def quantised(model: ModelProto, ranges: Ranges, *, symmetric: bool) -> ModelProto:
    """Return the model with its convolutions and dense layers in 8 bits.

    model: its Conv and Gemm nodes have constant weights, output channels first, and a bias. ranges: of each tensor that
    is quantised. symmetric: signed activations around 0 and biases as they are, which TensorRT demands; ONNX Runtime is
    faster with unsigned activations. Raises KeyError if an input of Conv or Gemm has no range.
    """
    from onnx import ModelProto

    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.ClearField("initializer")
    return _Quantiser(model, made, ranges, symmetric=symmetric).quantised()


class _Quantiser:
    """Moves a model's nodes and constants to another one, with Q/DQ nodes between them."""

    def __init__(self, model: ModelProto, made: ModelProto, ranges: Ranges, *, symmetric: bool) -> None:
        from onnx import numpy_helper

        self._model, self._made, self._symmetric = model, made, symmetric
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._scales = {name: _scale_of(*limits, symmetric=symmetric) for name, limits in ranges.items()}

    def quantised(self) -> ModelProto:
        """Return the other model, complete."""
        for value in self._model.graph.input:
            self._split(value.name)
        for node in self._model.graph.node:
            self._node(node)
        return self._made

    def _node(self, node: Any) -> None:
        from onnx import NodeProto

        copy = NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [_after(name) if name in self._scales else name for name in node.input]
        if node.op_type in _WITH_WEIGHTS:
            copy.input[1:] = self._weights(*node.input)
        else:
            for name in node.input:
                if name in self._constants:
                    self._constant(name, self._constants[name])
        self._made.graph.node.append(copy)
        for name in node.output:
            self._split(name)

    def _weights(self, given: str, weight: str, bias: str) -> list[str]:
        """Add 8-bit weights and the 32-bit bias of a node; return what it reads."""
        kernel, offset = self._constants[weight], self._constants[bias]
        largest = np.abs(kernel.reshape(len(kernel), -1)).max(axis=1)
        scale = (np.maximum(largest, np.finfo(np.float32).tiny) / 127).astype(np.float32)
        if not self._symmetric:  # a bias in steps of both scales leaves room in 32 bits for the products added to it
            least = np.abs(offset).astype(np.float64) / 2**30 / self._scales[given][0]
            scale = np.maximum(scale, least).astype(np.float32)
        spread = scale.reshape(-1, *[1] * (kernel.ndim - 1))
        self._dequantise(weight, np.clip(np.rint(kernel / spread), -127, 127).astype(np.int8), scale)
        if self._symmetric:
            self._constant(bias, offset)
            return [_after(weight), bias]
        scale = scale * self._scales[given][0]
        whole = np.rint(offset.astype(np.float64) / scale).astype(np.int32)
        self._dequantise(bias, whole, scale)
        return [_after(weight), _after(bias)]

    def _split(self, name: str) -> None:
        """Quantise a tensor that has a range, and dequantise it for those who read it."""
        if name not in self._scales:
            return
        for part, value in zip(("scale", "zero"), self._scales[name], strict=True):
            self._constant(f"{name}.{part}", np.array(value))
        parameters = [f"{name}.scale", f"{name}.zero"]
        self._add("QuantizeLinear", [name, *parameters], f"{name}.quantised")
        self._add("DequantizeLinear", [f"{name}.quantised", *parameters], _after(name))

    def _dequantise(self, name: str, whole: NDArray[Any], scale: NDArray[np.float32]) -> None:
        self._constant(f"{name}.quantised", whole)
        self._constant(f"{name}.scale", scale)
        self._constant(f"{name}.zero", np.zeros(len(scale), whole.dtype))
        self._add(
            "DequantizeLinear", [f"{name}.{part}" for part in ("quantised", "scale", "zero")], _after(name), axis=0
        )

    def _constant(self, name: str, values: NDArray[Any]) -> None:
        from onnx import numpy_helper

        if all(tensor.name != name for tensor in self._made.graph.initializer):
            self._made.graph.initializer.append(numpy_helper.from_array(values, name))

    def _add(self, kind: str, given: list[str], made: str, **attributes: Any) -> None:
        from onnx import helper

        self._made.graph.node.append(helper.make_node(kind, given, [made], name=made, **attributes))


def _after(name: str) -> str:
    """The tensor that stands for this one once it went through 8 bits."""
    return f"{name}.dequantised"


def _scale_of(least: float, largest: float, *, symmetric: bool) -> tuple[np.float32, Any]:
    """Return the scale and the zero point of a tensor with these values; 0 is always exact."""
    least, largest = min(float(least), 0.0), max(float(largest), 0.0)
    if symmetric:
        return np.float32(max(-least, largest, 1e-30) / 127), np.int8(0)
    scale = np.float32(max(largest - least, 1e-30) / 255)
    return scale, np.uint8(np.clip(np.rint(-least / scale), 0, 255))
