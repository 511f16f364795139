"""Whether an ONNX file can be served as a classifier: what it must take and answer, and how its logits are found."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetsel.base.errors import ManifestError
from jetsel.image.model_input import MAX_SIDE_PX

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


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


LOGITS, EMBEDDING = "logits", "embedding"
_FLOAT = 1  # TensorProto.DataType of 32-bit numbers


@dataclass(frozen=True)
class Classifier:
    """A model, the size of its input, and which tensor its logits are.

    put_behind: the operators that make that tensor (n, classes) float32. answers_logits: whether the tensor is that
    already, and an output called `logits`.
    """

    model: ModelProto
    height_px: int
    width_px: int
    logits: str
    put_behind: tuple[str, ...]
    answers_logits: bool


def classifier_of(model: ModelProto, name: str, input_px: tuple[int, int] | None, output: str | None) -> Classifier:
    """Settle what the owner of a model did not say.

    name: what messages call it. input_px: width and height, needed if the file leaves them open. output: the tensor
    that holds the logits, needed if several could. Raises ManifestError that names the repair.
    """
    height_px, width_px = _size(name, _only_input(name, model), input_px)
    ends = GraphEnds(model)
    logits = _logits(name, ends, output)
    put_behind = ends.put_behind(logits)
    answers_logits = logits == LOGITS and LOGITS in ends.outputs and not put_behind
    return Classifier(model, height_px, width_px, logits, put_behind, answers_logits)


def _only_input(name: str, model: ModelProto) -> ValueInfoProto:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]  # older files name weights here, too
    if len(inputs) != 1:
        names = ", ".join(value.name for value in inputs[:5]) or "none"
        raise ManifestError(
            f"{name}: takes {len(inputs)} inputs ({names}) instead of one, the image: export it with one input"
        )
    value: ValueInfoProto = inputs[0]
    if value.type.tensor_type.elem_type != _FLOAT:
        raise ManifestError(f"{name}: its input {value.name} is not of float32: export it with a float32 input")
    return value


def _sides(value: ValueInfoProto) -> tuple[int | None, ...]:
    """Return the input's sides, None for one that the file leaves open."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return (None, None, None, None)
    return tuple(side.dim_value if side.dim_value > 0 else None for side in tensor.shape.dim)


def _size(name: str, value: ValueInfoProto, input_px: tuple[int, int] | None) -> tuple[int, int]:
    """Return height and width; raises ManifestError unless the input is (n, 3, height, width)."""
    shape = _sides(value)
    if len(shape) != 4 or shape[1] not in (3, None) or (shape[1] is None and shape[3] == 3):
        sides = ", ".join("?" if side is None else str(side) for side in shape)
        raise ManifestError(
            f"{name}: its input {value.name} is ({sides}), not (n, 3, height, width): export it for colour "
            "images, channels first"
        )
    if shape[0] is not None and shape[0] > 1:
        raise ManifestError(
            f"{name}: takes exactly {shape[0]} images at a time: export it with a variable batch size, or with 1"
        )
    wanted = (None, None) if input_px is None else (input_px[1], input_px[0])
    for side, given in zip(shape[2:], wanted, strict=True):
        if side is not None and given is not None and side != given:
            raise ManifestError(
                f"{name}: its input is {shape[3] or '?'} x {shape[2] or '?'} px, not "
                f"{wanted[1]} x {wanted[0]}: leave --input out"
            )
    height, width = shape[2] or wanted[0], shape[3] or wanted[1]
    if height is None or width is None:
        raise ManifestError(
            f"{name}: takes images of any size: give the size that it was trained for, as in --input 224x224"
        )
    if max(height, width) > MAX_SIDE_PX:
        raise ManifestError(f"{name}: takes {width} x {height} px; at most {MAX_SIDE_PX} on a side are served")
    return height, width


def _logits(name: str, ends: GraphEnds, wanted: str | None) -> str:
    """Return the tensor that holds the logits; raises ManifestError, also if it is known to hold other numbers."""
    if wanted is not None and wanted not in ends.makers:
        raise ManifestError(f"{name}: computes no {wanted!r}; its outputs are {', '.join(ends.outputs)}")
    others = [output for output in ends.outputs if output != EMBEDDING]
    chosen = wanted or (LOGITS if LOGITS in ends.makers else others[0] if len(others) == 1 else None)
    fault = None if chosen is None else ends.fault(chosen)
    if chosen is not None and fault is None:
        return chosen
    near = (ends.logits_of(one) for one in (chosen, *others) if one is not None)
    usable = next((one for one in near if one is not None), None)
    repair = (
        f"add it with --output {usable}" if usable else "export it with a number for each class, before any softmax"
    )
    if chosen is None:
        raise ManifestError(f"{name}: has the outputs {', '.join(ends.outputs) or '(none)'}: {repair}")
    raise ManifestError(f"{name}: its {chosen} {fault}: {repair}")
