"""Find the logits of a graph: the operators that make its outputs, and the tensor before a softmax or sigmoid."""

from __future__ import annotations

import contextlib
import math

from onnx import ModelProto, TensorProto, shape_inference

from jetsel.zoo.onnx_model import Step

_BY_ITSELF = "a probability for each class by itself, as several may hold at once; if each image has exactly one class"
_SHARES = "probabilities instead of logits"
_REASON = dict.fromkeys(("Sigmoid", "HardSigmoid"), _BY_ITSELF) | dict.fromkeys(("Softmax", "Exp"), _SHARES)
_REASON |= dict.fromkeys(("Atan", "Erf", "LpNormalization", "Softsign", "Tanh"), "numbers in a fixed range, not logits")
_CHOOSING = ("ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "Hardmax", "Less", "LessOrEqual", "Sign", "TopK")
_REASON |= dict.fromkeys(_CHOOSING, "what was chosen or sorted instead of a number for each class")
"""Operator whose output is no logits -> what its output is. Exp: part of a softmax or sigmoid made of single nodes."""

_KEPT_BY = """Abs Add And BatchNormalization Cast CastLike Ceil Clip Concat DequantizeLinear Div Dropout
    DynamicQuantizeLinear Expand Flatten Floor Gather GatherElements GatherND Identity LeakyRelu Log Max Mean Min Mul
    Neg Not OneHot Or Pad Pow QuantizeLinear Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Round
    Slice Split Sqrt Squeeze Sub Sum Tile Transpose Unsqueeze Where ZipMap"""
_KEEPING = frozenset(_KEPT_BY.split())  # their output is no logits if each input is constant or no logits itself

_REORDERING = ("Concat", "Gather", "Neg", "QLinearConcat", "Reciprocal", "Slice")  # or they may reverse the scale
_PLAIN = ("Cast", "Clip", "DequantizeLinear", "Dropout", "Flatten", "Identity", "QuantizeLinear", "Reshape", "Squeeze")
_WHOLE = {("Softmax",): "Softmax", ("Exp", "share"): "Softmax", ("Sigmoid",): "Sigmoid"}
_NEVER_NEGATIVE = ("Abs", "ReduceL1", "ReduceL2", "Relu", "Softplus", "Sqrt")
_FLOATS = ("undefined", "float", "float16", "double", "bfloat16")  # undefined: onnx could not infer the type


class GraphEnds:
    """The outputs of a graph, and the way back from them to the logits. makers: tensor -> node that makes it."""

    def __init__(self, model: ModelProto, classes: int) -> None:
        """Infer types and shapes, and trace which tensors cannot be logits. classes: number of the family's labels."""
        self.outputs = [value.name for value in model.graph.output]
        self.makers = {output: node for node in model.graph.node for output in node.output}
        self._classes = classes
        self._types: dict[str, tuple[str, tuple[int, ...] | None]] = {}  # tensor -> what `_type` returns
        with contextlib.suppress(shape_inference.InferenceError, RuntimeError, ValueError):  # ONNX Runtime reports it
            model = shape_inference.infer_shapes(model, data_prop=True)
        kinds = {number: kind.lower() for kind, number in TensorProto.DataType.items()}
        for value in [*model.graph.value_info, *model.graph.output]:
            form, tensor = value.type.WhichOneof("value") or "tensor_type", value.type.tensor_type
            kind = kinds.get(tensor.elem_type, "an unknown type") if form == "tensor_type" else form
            shape = tuple(side.dim_value for side in tensor.shape.dim) if tensor.HasField("shape") else None
            self._types[value.name] = kind, shape
        self._constants = {"", *(tensor.name for tensor in model.graph.initializer)}
        self._origins: dict[str, str] = {}  # tensor that is no logits -> the operator in _REASON that it comes from
        for node in model.graph.node:  # in topological order, so the origins of its inputs are known
            kind = node.op_type.removeprefix("QLinear")  # ONNX Runtime's prefix for operators in 8 bits
            origins = [self._origins.get(name) for name in node.input if name not in self._constants]
            if not origins or kind in ("Shape", "Size"):
                self._constants.update(node.output)
            elif kind in _REASON or (kind == "Pow" and node.input[0] in self._constants):
                self._origins |= dict.fromkeys(node.output, kind if kind in _REASON else "Exp")
            elif kind in _KEEPING and origins[0] and all(origins) and (kind, _REASON[origins[0]]) != ("Log", _SHARES):
                self._origins |= dict.fromkeys(node.output, origins[0])

    def _type(self, tensor: str) -> tuple[str, tuple[int, ...] | None]:
        """Return a tensor's element type and shape: an open dimension is 0, an unknown shape None."""
        return self._types.get(tensor, ("undefined", None))

    def is_table(self, tensor: str) -> bool:
        """Return True if a tensor is known to have several dimensions above 1, as boxes and feature maps do."""
        return sum(side > 1 for side in self._type(tensor)[1] or ()) > 1

    def is_number(self, tensor: str) -> bool:
        """Return True if a tensor is known to hold one number for each image, as of two classes with one logit."""
        shape = self._type(tensor)[1]
        return shape is not None and math.prod(shape[1:]) == 1 and shape[:1] <= (1,)  # the batch is open or 1

    def fault(self, tensor: str) -> str | None:
        """Return why a tensor cannot be the logits of the classes, in words after its name; None if it can be."""
        kind, shape = self._type(tensor)
        if kind not in _FLOATS:
            return f"is of {kind}, not of float32"
        if self.is_table(tensor):
            sides = ", ".join(str(side or "?") for side in shape or ())
            return f"has the shape ({sides}), as boxes of a detector or features have"
        if self.is_number(tensor) and self._classes != 2:
            return f"is one number for an image, which tells two classes apart, and there are {self._classes} labels"
        if self.is_number(tensor) and self._made_by(tensor) in _NEVER_NEGATIVE:
            return "is one number that is never negative"
        return f"comes from {origin}: {_REASON[origin]}" if (origin := self._origins.get(tensor)) else None

    def _made_by(self, tensor: str) -> str:
        """Return the operator that makes a tensor, "" if none does."""
        return self.makers[tensor].op_type if tensor in self.makers else ""

    def logits_of(self, tensor: str) -> tuple[str | None, str]:
        """Return the nearest tensor from which `tensor` is computed and which can be the logits, and the activation.

        The tensor is None if there is no candidate or several. The activation is Softmax or Sigmoid if only that lies
        between the two tensors, otherwise "".
        """
        reached, operators = [tensor], set()
        for name in reached:
            node = self.makers[name] if name in self._origins else None
            if node and not node.op_type.startswith(_REORDERING):
                inputs = node.input[:1] if node.op_type in ("Div", "Sub") else node.input  # the second reverses scale
                reached += set(inputs).difference(self._constants, reached)
                is_normalisation = node.op_type == "Div" and self._made_by(node.input[1]) == "ReduceSum"
                operators.add("share" if is_normalisation else node.op_type)
        candidates = [name for name in reached if name in self.makers and self.fault(name) is None]
        if len(candidates) != 1:
            return None, ""
        activation = _WHOLE.get(tuple(sorted(operators.difference(_PLAIN))), "")
        return candidates[0], "" if activation == "Softmax" and self.is_number(candidates[0]) else activation

    def before_shift(self, tensor: str) -> str:
        """Return the tensor, or its input if its node only subtracts the maximum or may squeeze the batch away."""
        node, shape = self.makers[tensor], self._type(tensor)[1]
        squeezes_all = len(node.input) == 1 and not node.attribute  # squeezes every dimension of 1
        is_squeezed = node.op_type == "Squeeze" and (squeezes_all if shape is None else len(shape) < 2)
        subtracts_maximum = node.op_type == "Sub" and self._made_by(node.input[1]) == "ReduceMax"
        return str(node.input[0]) if is_squeezed or subtracts_maximum else tensor

    def steps_behind(self, tensor: str) -> tuple[Step, ...]:
        """Return nodes that convert a tensor of floats to (n, classes) float32; they turn one number x into (0, x)."""
        kind, shape = self._type(tensor)
        steps = [] if kind in ("float", "undefined") else [Step("Cast", {"to": TensorProto.FLOAT})]
        if shape is not None and (len(shape) != 2 or shape[0] > 1):
            steps.append(Step("Flatten", {"axis": int(shape[:1] in ((0,), (1,)))}))
        if self.is_number(tensor):
            steps.append(Step("MatMul", constant=[[0, 1]]))
        return tuple(steps)
