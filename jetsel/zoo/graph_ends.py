"""What the tensors at a graph's end hold, by the nodes that make them: logits, or numbers made of logits."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_BY_ITSELF = "a probability for each class by itself instead of logits; if each image has exactly one class"
_ENDS = {"Sigmoid": _BY_ITSELF, "HardSigmoid": _BY_ITSELF}
_ENDS |= dict.fromkeys(("Softmax", "Exp"), "probabilities instead of logits")  # Exp: of a softmax that is written out
"""Operators that give no logits, and what they give."""

_KEEPING = {"ArgMax", "Cast", "Clip", "DequantizeLinear", "Div", "Flatten", "Identity", "QuantizeLinear", "Reshape"}
_KEEPING |= {"Squeeze", "TopK", "Transpose", "Unsqueeze", "ZipMap"}
"""Operators that keep the order of the classes in their first input; a softmax written out divides by its sum."""

_SHIFTING = {"Add", "Mul", "Sub"}  # keep it, too, if their second input is a constant
_FLOATS = ("undefined", "float", "float16", "double", "bfloat16")  # undefined: onnx does not infer it


class GraphEnds:
    """The tensors of a graph: which operators make each, and its type and shape as far as onnx infers them."""

    def __init__(self, model: ModelProto) -> None:
        self.outputs = [value.name for value in model.graph.output]
        self.makers = {output: node for node in model.graph.node for output in node.output}
        self._known = _known(model)

    def fault(self, tensor: str) -> str | None:
        """Return why a tensor holds no logits of two or more classes, None if nothing shows that."""
        kind, shape = self._known.get(tensor, ("undefined", None))
        if kind not in _FLOATS:
            return f"is of {kind}, not of float32"
        if shape is not None and math.prod(shape[1:]) == 1:
            sides = ", ".join(str(side or "?") for side in shape)
            return f"has the shape ({sides}), not a number for each of two or more classes of an image"
        end = next((node.op_type for node in self._back(tensor) if node.op_type in _ENDS), None)
        return None if end is None else f"comes from {end}: {_ENDS[end]}"

    def logits_of(self, tensor: str) -> str | None:
        """Return the nearest tensor that can hold logits, from this one backwards; None if there is none."""
        before = (str(node.input[0]) for node in self._back(tensor))
        return next((one for one in (tensor, *before) if one in self.makers and self.fault(one) is None), None)

    def put_behind(self, tensor: str) -> tuple[str, ...]:
        """Return the operators that make a tensor of floats (n, classes) float32, none if it is that already."""
        kind, shape = self._known.get(tensor, ("undefined", None))
        cast = () if kind in ("float", "undefined") else ("Cast",)
        return cast if shape is None or len(shape) == 2 else (*cast, "Flatten")

    def _back(self, tensor: str) -> Iterator[NodeProto]:
        """Yield the nodes that a tensor's numbers went through last, from the last on."""
        for _ in self.makers:  # not without end in a circle
            node = self.makers.get(tensor)
            if node is None or not node.input:
                return
            others = {self.makers[name].op_type for name in node.input[1:] if name in self.makers}
            shifts = node.op_type in _SHIFTING and others <= {"Constant"}
            if not shifts and node.op_type not in _KEEPING | _ENDS.keys():
                return
            yield node
            tensor = node.input[0]


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
