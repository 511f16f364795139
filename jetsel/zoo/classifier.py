"""Check whether an ONNX file can be served as a classifier, and adapt its input and output in the served copy."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, TensorProto

from jetsel.base.errors import ManifestError
from jetsel.image.model_input import MAX_SIDE_PX
from jetsel.zoo.conventions import LEVELS
from jetsel.zoo.graph_ends import GraphEnds
from jetsel.zoo.onnx_model import Step, inputs_of, keep_outputs, put_behind, put_in_front

LOGITS, EMBEDDING = "logits", "embedding"
_FLOAT = TensorProto.FLOAT
_TYPES = {"float32": _FLOAT, "uint8": TensorProto.UINT8, "float16": TensorProto.FLOAT16, "double": TensorProto.DOUBLE}
_GREY = [[[[0.299]], [[0.587]], [[0.114]]]]  # weights of red, green and blue: ITU-R BT.601, as in Pillow and OpenCV
_REPAIR = "export it with a number for each class, before any softmax"
_LEVELS = (Step("Max", constant=0), Step("Min", constant=255), Step("Add", constant=0.5), Step("Floor"))


@dataclass(frozen=True)
class GraphInput:
    """The input of an ONNX graph.

    kind: element type, a key of _TYPES; uint8 means pixels from 0 to 255. batch: number of images, None for any.
    channels: 3, or 1 for grey. is_cast: True if the graph itself first casts its input to another type.
    """

    kind: str
    is_channels_last: bool
    batch: int | None
    channels: int
    height_px: int
    width_px: int
    is_cast: bool

    def __str__(self) -> str:
        sides = [self.height_px, self.width_px]
        sides.insert(2 if self.is_channels_last else 0, self.channels)
        return f"{' x '.join(map(str, sides))} {self.kind}"

    def steps(self) -> dict[str, tuple[Step, ...]]:
        """Return description -> nodes that together convert float32 images (n, 3, height, width) into this input."""
        steps_by_text: dict[str, tuple[Step, ...]] = {}
        if self.channels == 1:
            steps_by_text["a conversion to grey"] = (Step("Conv", constant=_GREY),)
        if self.kind == "uint8":
            steps_by_text["rounding"] = _LEVELS
        if self.is_channels_last:
            steps_by_text["a transpose"] = (Step("Transpose", {"perm": [0, 2, 3, 1]}),)
        if self.kind != "float32" and not (self.kind == "uint8" and self.is_cast):  # TensorRT cannot compute with uint8
            steps_by_text["a cast"] = (Step("Cast", {"to": _TYPES[self.kind]}),)
        return steps_by_text


@dataclass(frozen=True)
class Classifier:
    """A model that can be served as a classifier, and how the served copy differs from it.

    logits: name of the tensor. behind: nodes that convert it to (n, classes) float32. changes: a line for each change;
    empty if the model already takes float32 images (n, 3, height, width) and has the output `logits`.
    """

    model: ModelProto
    image: GraphInput
    logits: str
    behind: tuple[Step, ...]
    changes: tuple[str, ...]

    def served(self) -> bytes:
        """Return the ONNX file's content to serve: float32 (n, 3, height, width) -> logits, and embedding if any."""
        served_model = copy.deepcopy(self.model)
        outputs = {value.name: value.type.tensor_type.elem_type for value in served_model.graph.output}
        front_steps = [step for steps in self.image.steps().values() for step in steps]
        if front_steps:
            sides = (self.image.batch or "n", 3, self.image.height_px, self.image.width_px)
            put_in_front(served_model, front_steps, sides)
        if outputs.get(EMBEDDING, _FLOAT) != _FLOAT:
            put_behind(served_model, EMBEDDING, EMBEDDING, (Step("Cast", {"to": _FLOAT}),))
        if self.behind or self.logits != LOGITS or LOGITS not in outputs:
            put_behind(served_model, self.logits, LOGITS, self.behind)
        keep_outputs(served_model, (LOGITS, EMBEDDING))
        return bytes(served_model.SerializeToString())

    def spec(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return values of InputSpec changed for the graph's input; raises ManifestError if grey ones are not equal."""
        if self.image.kind == "uint8":
            values = {**values, **LEVELS}
        if self.image.channels == 3:
            return values
        if len({*values["mean"]}) > 1 or len({*values["std"]}) > 1:
            raise ManifestError("it takes grey images: give --mean and --std one number three times, as 0.5,0.5,0.5")
        return {**values, "channels": "rgb"}


def classifier_of(
    model: ModelProto,
    name: str,
    classes: int,
    input_px: tuple[int, int] | None = None,
    output: str | None = None,
    *,
    exclusive: bool = False,
) -> Classifier:
    """Return the classifier in a graph: its input, its logits, and the changes that it needs.

    name: for messages. classes: number of labels. input_px: width and height, needed if the file leaves them open.
    output: name of the tensor of logits, needed if there are several candidates. exclusive: see ModelDescription.
    Raises ManifestError if the graph is no classifier or needs an option.
    """
    try:
        image, ends = _graph_input(model, input_px), GraphEnds(model, classes)
        chosen_output, activation, logits = _choose_logits(ends, output, exclusive=exclusive)
    except ManifestError as error:
        raise ManifestError(f"{name}: {error}") from None
    logits = ends.before_shift(logits)
    output_steps = ends.steps_behind(logits)
    changes = []
    if input_steps := image.steps():
        changes.append(f"its input is {image}: {' and '.join(input_steps)} put in front")
    if image.kind == "uint8":
        changes.append("it takes levels of 0 to 255, so its mean is 0 and its std 1/255, whatever the options say")
    if activation or output_steps or logits != LOGITS or LOGITS not in ends.outputs:
        origin_text = f"its {chosen_output} comes from {activation}: " if activation else ""
        steps_text = f", with {' and '.join(step.kind for step in output_steps)} put behind" if output_steps else ""
        changes.append(f"{origin_text}its tensor {logits} is the output {LOGITS}{steps_text}")
    if ends.is_number(logits):
        changes.append("its one number is the second label's logit; the first label's is 0")
    return Classifier(model, image, logits, output_steps, tuple(changes))


def _graph_input(model: ModelProto, input_px: tuple[int, int] | None) -> GraphInput:
    """Return the graph's input; raises ManifestError unless it takes images with one or three channels."""
    inputs = inputs_of(model)
    if len(inputs) != 1:
        names = ", ".join(value.name for value in inputs[:5]) or "none"
        raise ManifestError(f"takes {len(inputs)} inputs ({names}) instead of one, the image: export it with one input")
    value, tensor = inputs[0], inputs[0].type.tensor_type
    kind = next((kind for kind, number in _TYPES.items() if number == tensor.elem_type), None)
    if kind is None:
        raise ManifestError(f"its input {value.name} is not of {', '.join(_TYPES)}: export it with float32")
    shape = [max(side.dim_value, 0) for side in tensor.shape.dim] if tensor.HasField("shape") else [0] * 4
    layouts = ((3, 1), (3, 3), (1, 1), (1, 3), (0, 1))  # channels (0: any number) and the axis that holds them
    layout = next((pair for pair in layouts if len(shape) == 4 and shape[pair[1]] == pair[0]), None)
    if layout is None:
        sides = ", ".join(str(side or "?") for side in shape)
        reason = f"is ({sides}), not (n, 3, height, width)"
        raise ManifestError(f"its input {value.name} {reason}: export it for images in colour or grey")
    channels, is_channels_last = layout[0] or 3, layout[1] == 3
    batch = shape[0]
    if batch > 1:
        raise ManifestError(f"takes exactly {batch} images at a time: export it with a variable batch size, or with 1")
    height_px, width_px = _input_size(shape[1:3] if is_channels_last else shape[2:], input_px)
    # A graph that casts its input at once accepts float32 too; `steps` then adds no cast to uint8.
    readers = {node.op_type for node in model.graph.node if value.name in node.input}
    return GraphInput(kind, is_channels_last, batch or None, channels, height_px, width_px, readers == {"Cast"})


def _input_size(sides: list[int], input_px: tuple[int, int] | None) -> tuple[int, int]:
    """Return height and width; raises ManifestError if they contradict each other, are unknown or too large.

    sides: height and width in the file, 0 if open. input_px: width and height from the owner, or None.
    """
    width, height = input_px or (sides[1], sides[0])
    if not (width and height):
        raise ManifestError("takes images of any size: give the size that it was trained for, as in --input 224x224")
    if sides[0] not in (0, height) or sides[1] not in (0, width):
        file_px = f"{sides[1] or '?'} x {sides[0] or '?'} px"
        raise ManifestError(f"its input is {file_px}, not {width} x {height}: leave --input out")
    if max(height, width) > MAX_SIDE_PX:
        raise ManifestError(f"takes {width} x {height} px; at most {MAX_SIDE_PX} on a side are served")
    return height, width


def _choose_logits(ends: GraphEnds, output_name: str | None, *, exclusive: bool) -> tuple[str, str, str]:
    """Return the output to use, the activation that it comes from (Softmax, Sigmoid or ""), and the tensor of logits.

    output_name: tensor that the owner chose, or None. exclusive: see ModelDescription. Raises ManifestError.
    """
    if output_name is not None and output_name not in ends.makers:
        raise ManifestError(f"computes no {output_name!r}; its outputs are {', '.join(ends.outputs)}")
    candidates = [output for output in ends.outputs if output != EMBEDDING]
    output = output_name or (LOGITS if LOGITS in ends.makers else candidates[0] if len(candidates) == 1 else None)
    logits_before = [ends.logits_of(name) for name in (output, *candidates) if name is not None]
    usable_name = next((name for name, _ in logits_before if name is not None), None)
    repair = f"add it with --output {usable_name}" if usable_name else _REPAIR
    if output is not None:
        fault, (logits, activation) = ends.fault(output), logits_before[0]
        if fault is None:
            return output, "", output
        accepted = ("Softmax", "Sigmoid") if exclusive or (logits and ends.is_number(logits)) else ("Softmax",)
        if logits is not None and activation in accepted:
            return output, activation, logits
        repair = "add it with --exclusive" if activation == "Sigmoid" else repair
        raise ManifestError(f"its {output} {fault}: {repair}")
    box_output = next((name for name in candidates if ends.is_table(name)), None)
    if box_output is not None:
        repair = "export a classifier, or name the output with a number for each class with --output"
        raise ManifestError(f"its {box_output} {ends.fault(box_output)}: {repair}")
    raise ManifestError(f"has the outputs {', '.join(ends.outputs) or '(none)'}: {repair}")
