"""The first layers of a model as a network of their own: what a multiplexer sees a photograph with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetsel.errors import CalibrationError
from jetsel.train.optimize.graph import operations, shapes_of
from jetsel.train.optimize.network import converted

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import nn

SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Of the cheapest model's multiply-accumulates: where cuts are tried. The paper allows all of them at most."""


@dataclass(frozen=True)
class Cut:
    """A tensor (n, channels, height, width) that all later layers read the photograph from.

    operations: multiply-accumulates up to it. share: of those of the cheapest model.
    """

    tensor: str
    channels: int
    operations: int
    share: float


def cuts(model: ModelProto, cheapest: int) -> list[Cut]:
    """Return where the model can be cut, the deepest within each share of the operations, the earliest first.

    model: of one size, see `optimize.graph.for_size`. cheapest: multiply-accumulates of the cheapest model. Raises
    CalibrationError where there is no such place.
    """
    shapes = shapes_of(model)
    places = []
    for tensor in _narrow(model):
        shape = shapes.get(tensor, ())
        if len(shape) == 4 and shape[2] * shape[3] > 1:
            done = operations(_up_to(model, tensor))
            places.append(Cut(tensor, shape[1], done, done / cheapest))
    places = [place for place in places if 0 < place.operations <= cheapest]
    if not places:
        raise CalibrationError(
            "none of its first layers sees a whole photograph at no more than the cheapest model's cost: name another "
            "model with --stem"
        )
    found = [[one for one in places if one.share <= share] or places[:1] for share in SHARES]
    return list(dict.fromkeys(one[-1] for one in found))


def stem_of(model: ModelProto, cut: Cut) -> nn.Module:
    """Return the layers up to a cut, (n, 3, height, width) float32 normalised -> (n, channels, h, w).

    Raises CalibrationError where an operator has no counterpart in torch.
    """
    return converted(_up_to(model, cut.tensor), "its first layers", "name another model with --stem")


def _narrow(model: ModelProto) -> list[str]:
    """Return the tensors through which everything goes, in their order: beside them nothing is read later."""
    stored = {tensor.name for tensor in model.graph.initializer}
    last_read = {name: place for place, node in enumerate(model.graph.node) for name in node.input}
    for output in model.graph.output:
        last_read[output.name] = len(model.graph.node)
    alive: set[str] = {one.name for one in model.graph.input} - stored
    found: list[str] = []
    for place, node in enumerate(model.graph.node):
        if not any(name and name not in stored for name in node.input):
            stored |= set(node.output)  # a constant
            continue
        alive |= set(node.output)
        alive = {name for name in alive if last_read.get(name, -1) > place}
        if len(alive) == 1:
            found += alive
    return found


def _up_to(model: ModelProto, tensor: str) -> ModelProto:
    """Return the part of the graph that makes one tensor."""
    from onnx.utils import Extractor

    weights = {one.name for one in model.graph.initializer}
    inputs = [one.name for one in model.graph.input if one.name not in weights]
    part: ModelProto = Extractor(model).extract_model(inputs, [tensor])
    return part
