"""Whether an ONNX file can be served as a classifier: what it must take and answer, and how its logits are found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ManifestError
from jetsel.image.model_input import MAX_SIDE_PX
from jetsel.zoo.onnx_graph import FLOAT, Graph, Value, read_graph, with_alias, with_output

LOGITS, EMBEDDING = "logits", "embedding"


@dataclass(frozen=True)
class Classifier:
    """A file's graph, the size of its input, which tensor its logits are, and whether it has an embedding."""

    graph: Graph
    height_px: int
    width_px: int
    logits: str
    has_embedding: bool

    @property
    def suffix(self) -> bytes:
        """What, appended to the file, makes its logits an output called so; nothing where they are."""
        if any(value.name == LOGITS for value in self.graph.outputs):
            return b""
        return with_output(LOGITS) if self.logits == LOGITS else with_alias(self.logits, LOGITS)

    @property
    def before_softmax(self) -> str | None:
        """The tensor that a softmax makes the logits from, None where none does."""
        makers = {output: node for node in self.graph.nodes for output in node.outputs}
        maker = makers.get(self.logits)
        return maker.inputs[0] if maker is not None and maker.kind == "Softmax" and maker.inputs else None


def classifier_in(path: Path, name: str, input_px: tuple[int, int] | None, output: str | None) -> Classifier:
    """Read the file and settle what the owner did not say; the weights must lie in it, see store.check_whole.

    name: what messages call it. input_px: width and height, needed where the file leaves them open. output: the tensor
    that holds the logits, needed where several could. Raises ManifestError that names the repair.
    """
    try:
        graph = read_graph(path)
    except ValueError as error:
        raise ManifestError(f"{name}: no ONNX file: {error}; export the model again") from None
    return classifier_of(graph, name, input_px, output)


def classifier_of(graph: Graph, name: str, input_px: tuple[int, int] | None, output: str | None) -> Classifier:
    """Settle the same of a graph that was read."""
    height_px, width_px = _size(name, _only_input(name, graph), input_px)
    outputs = [value.name for value in graph.outputs]
    logits = _logits(name, graph, outputs, output)
    return Classifier(graph, height_px, width_px, logits, EMBEDDING in outputs)


def _only_input(name: str, graph: Graph) -> Value:
    if len(graph.inputs) != 1:
        names = ", ".join(value.name for value in graph.inputs) or "none"
        raise ManifestError(
            f"{name}: takes {len(graph.inputs)} inputs ({names}) where one is due, the photograph: export it so"
        )
    (value,) = graph.inputs
    if value.elem_type != FLOAT:
        raise ManifestError(f"{name}: its input {value.name} is not of float32: export it with a float32 input")
    return value


def _size(name: str, value: Value, input_px: tuple[int, int] | None) -> tuple[int, int]:
    """Return height and width; raises ManifestError unless the input is (n, 3, height, width)."""
    shape = value.shape or (None, None, None, None)
    if len(shape) != 4 or shape[1] not in (3, None) or (shape[1] is None and shape[3] == 3):
        sides = ", ".join("?" if side is None else str(side) for side in shape)
        raise ManifestError(
            f"{name}: its input {value.name} is ({sides}) where (n, 3, height, width) is due: export it for colour "
            "photographs, channels first"
        )
    if shape[0] is not None and shape[0] > 1:
        raise ManifestError(
            f"{name}: takes {shape[0]} photographs at a time, no fewer: export it with an open first side, or with 1"
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
            f"{name}: takes photographs of any size: say which it was trained for, as in --input 224x224"
        )
    if max(height, width) > MAX_SIDE_PX:
        raise ManifestError(f"{name}: takes {width} x {height} px; at most {MAX_SIDE_PX} on a side are served")
    return height, width


def _logits(name: str, graph: Graph, outputs: list[str], wanted: str | None) -> str:
    tensors = {output for node in graph.nodes for output in node.outputs}
    if wanted is not None and wanted not in tensors:
        raise ManifestError(f"{name}: computes no {wanted!r}; its outputs are {', '.join(outputs)}")
    if wanted not in (None, LOGITS) and LOGITS in tensors:
        raise ManifestError(f"{name}: calls another tensor logits already: rename that one, or leave --output out")
    others = [output for output in outputs if output != EMBEDDING]
    if wanted is not None or LOGITS in tensors:
        return wanted or LOGITS
    if len(others) != 1:
        raise ManifestError(
            f"{name}: has the outputs {', '.join(outputs) or '(none)'}: say which one holds the logits, as in "
            f"--output {others[0] if others else 'NAME'}"
        )
    return others[0]
