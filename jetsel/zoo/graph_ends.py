"""What the tensors at a graph's end hold, by the nodes that make them: logits, or numbers made of logits."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

_BY_ITSELF = "a probability for each class by itself instead of logits; if each image has exactly one class"
_SHARES = "probabilities instead of logits"
_ENDS = dict.fromkeys(("Sigmoid", "HardSigmoid"), _BY_ITSELF) | dict.fromkeys(("Softmax", "Exp"), _SHARES)
_ENDS |= dict.fromkeys(("Atan", "Erf", "LpNormalization", "Softsign", "Tanh"), "numbers in a fixed range, not logits")
_CHOOSING = ("ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "Hardmax", "Less", "LessOrEqual", "Sign", "TopK")
_ENDS |= dict.fromkeys(_CHOOSING, "what was chosen or sorted instead of a number for each class")
"""Operators that give no logits, and what they give. Exp: of a softmax or a sigmoid that is written out."""

_KEPT_BY = """Abs Add And BatchNormalization Cast CastLike Ceil Clip Concat DequantizeLinear Div Dropout
    DynamicQuantizeLinear Expand Flatten Floor Gather GatherElements GatherND Identity LeakyRelu Log Max Mean Min Mul
    Neg Not OneHot Or Pad Pow QuantizeLinear Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Round
    Slice Split Sqrt Squeeze Sub Sum Tile Transpose Unsqueeze Where ZipMap"""
_KEEPING = frozenset(_KEPT_BY.split())  # they make no logits of numbers that all come from ends, or are constant

_FLOATS = ("undefined", "float", "float16", "double", "bfloat16")  # undefined: onnx does not infer it


class GraphEnds:
    """The tensors of a graph: which operators make each, and its type and shape as far as onnx infers them."""

    def __init__(self, model: ModelProto) -> None:
        self.outputs = [value.name for value in model.graph.output]
        self.makers = {output: node for node in model.graph.node for output in node.output}
        self._known = _known(model)
        self._constants = {"", *(tensor.name for tensor in model.graph.initializer)}
        self._ends: dict[str, str] = {}
        for node in model.graph.node:
            kind = node.op_type.removeprefix("QLinear")  # as ONNX Runtime calls operators in 8 bits
            ends = [self._ends.get(name) for name in node.input if name not in self._constants]
            if not ends or kind in ("Shape", "Size"):
                self._constants.update(node.output)
            elif kind in _ENDS or (kind == "Pow" and node.input[0] in self._constants):
                self._ends |= dict.fromkeys(node.output, kind if kind in _ENDS else "Exp")
            elif kind in _KEEPING and ends[0] and all(ends) and (kind, _ENDS[ends[0]]) != ("Log", _SHARES):
                self._ends |= dict.fromkeys(node.output, ends[0])

    def fault(self, tensor: str) -> str | None:
        """Return why a tensor holds no logits of two or more classes, None if nothing shows that."""
        kind, shape = self._known.get(tensor, ("undefined", None))
        if kind not in _FLOATS:
            return f"is of {kind}, not of float32"
        if shape is not None and math.prod(shape[1:]) == 1:
            sides = ", ".join(str(side or "?") for side in shape)
            return f"has the shape ({sides}), not a number for each of two or more classes of an image"
        return f"comes from {self._ends[tensor]}: {_ENDS[self._ends[tensor]]}" if tensor in self._ends else None

    def logits_of(self, tensor: str) -> str | None:
        """Return the nearest tensor that can hold logits, from this one backwards; None if none can, or several."""
        reached = [tensor]
        for one in reached:
            node = self.makers[one] if one in self._ends else None  # those below may have the classes in another order:
            if node and not node.op_type.startswith(("Concat", "Gather", "Neg", "QLinearConcat", "Reciprocal")):
                inputs = node.input[:1] if node.op_type in ("Div", "Sub") else node.input  # the second turns it round
                reached += set(inputs).difference(self._constants, reached)
        found = [one for one in reached if one in self.makers and self.fault(one) is None]
        return found[0] if len(found) == 1 else None

    def put_behind(self, tensor: str) -> tuple[str, ...]:
        """Return the operators that make a tensor of floats (n, classes) float32, none if it is that already."""
        kind, shape = self._known.get(tensor, ("undefined", None))
        cast = () if kind in ("float", "undefined") else ("Cast",)
        return cast if shape is None or len(shape) == 2 else (*cast, "Flatten")


def _known(model: ModelProto) -> dict[str, tuple[str, tuple[int, ...] | None]]:
    """Return types and shapes by tensor: 0 for a side that is open, None for a shape that is unknown."""
    import onnx

    with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):  # ONNX Runtime says why
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    kinds = {number: kind.lower() for kind, number in onnx.TensorProto.DataType.items()}
    found = {}
    for value in [*model.graph.value_info, *model.graph.output]:
        form, tensor = value.type.WhichOneof("value") or "tensor_type", value.type.tensor_type
        kind = kinds.get(tensor.elem_type, "an unknown type") if form == "tensor_type" else form
        shape = tuple(side.dim_value for side in tensor.shape.dim) if tensor.HasField("shape") else None
        found[value.name] = kind, shape
    return found
