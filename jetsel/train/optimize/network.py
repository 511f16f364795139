"""A model's ONNX file as a torch network, which can be changed and trained; jetsel.zoo.export makes it a file again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from jetsel.base.errors import CalibrationError, pip_install
from jetsel.zoo.classifier import LOGITS

if TYPE_CHECKING:
    from onnx import ModelProto

FILE_ALONE = "use a method that changes only its file: --method int8"


def network_of(model: ModelProto, name: str) -> nn.Module:
    """Return the model as a torch network, (n, 3, height, width) float32 normalised -> logits (n, classes).

    model: of one size, see `graph.for_size`. Raises CalibrationError if an operator has no counterpart.
    """
    from onnx import ModelProto

    alone = ModelProto()
    alone.CopyFrom(model)
    for output in [output for output in alone.graph.output if output.name != LOGITS]:
        alone.graph.output.remove(output)
    net = _converted(alone, name)
    for parameter in net.parameters():
        parameter.requires_grad_(True)
    return net


def _converted(model: ModelProto, name: str) -> nn.Module:
    """Return a graph as a torch network that is not trained; raises CalibrationError with what to do instead."""
    try:
        from onnx2torch import convert
    except RuntimeError as error:  # torchvision, which it imports, says so of a torch of another build
        raise CalibrationError(
            f"torchvision does not match this torch ({error}): install matching builds of both, {pip_install('export')}"
        ) from error
    try:
        net: nn.Module = convert(model)
    except (NotImplementedError, KeyError, ValueError) as error:
        raise CalibrationError(f"{name} cannot be converted to a torch model: {error}; {FILE_ALONE}") from error
    return net.eval()


def last_layer(net: nn.Module) -> nn.Linear:
    """Return the layer that makes the logits; raises CalibrationError if that is no dense one."""
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise CalibrationError(
            "its last layer is not a dense layer, so its output channels are unknown: use --method factorise"
        )
    return layers[-1]
