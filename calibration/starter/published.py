"""A published model as a torch network again, so that it can teach without its training being run again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from calibration.starter.nets import SHAPES, ConvNorm, Net


def net_of(name: str, file: Path) -> Net:
    """Read `export`'s ONNX file back into architecture `name`, float32, for inference.

    The file holds the normalisations folded into the convolutions; here each normalisation is left to add the folded
    bias and do nothing else. Raises SystemExit where the file is missing or of another architecture.
    """
    if not file.exists():
        raise SystemExit(f"{file}: not published; run python -m calibration.starter.train {name}, then export it")
    graph = onnx.load(str(file)).graph
    stored = {
        tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).astype(np.float32)) for tensor in graph.initializer
    }
    for node in graph.node:
        if node.op_type == "Cast":
            stored[node.output[0]] = stored[node.input[0]]
    net = Net(SHAPES[name], len(stored["head.bias"])).eval()
    # Both the graph and the modules list the convolutions in the order of execution.
    places = [module for module in net.modules() if isinstance(module, ConvNorm)]
    folded = [node for node in graph.node if node.op_type == "Conv"]
    try:
        with torch.no_grad():
            for place, node in zip(places, folded, strict=True):
                convolution, norm = place
                assert isinstance(convolution, nn.Conv2d)
                assert isinstance(norm, nn.BatchNorm2d)
                convolution.weight.copy_(_shaped(stored[node.input[1]], convolution.weight))
                norm.bias.copy_(stored[node.input[2]])
                assert norm.running_var is not None
                norm.weight.fill_(1.0)
                norm.running_var.fill_(1.0 - norm.eps)
            net.head.weight.copy_(_shaped(stored["head.weight"], net.head.weight))
            net.head.bias.copy_(stored["head.bias"])
    except ValueError as error:
        raise SystemExit(f"{file} is not of architecture {name}: {error}") from error
    return net


@torch.no_grad()
def unfolded(net: Net, batch: torch.Tensor) -> Net:
    """Give a published net's normalisations their statistics back, those of a batch, so that it can be trained on.

    The net's answers stay the same: each normalisation multiplies by the deviation and adds the mean that it takes out.
    Without them, training at a usual rate diverges.
    """
    places = [module for module in net.modules() if isinstance(module, ConvNorm)]

    def restore(norm: nn.BatchNorm2d, said: torch.Tensor) -> None:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(said.mean((0, 2, 3)))
        norm.running_var.copy_(said.var((0, 2, 3)))
        norm.weight.copy_((norm.running_var + norm.eps).sqrt())
        norm.bias.add_(norm.running_mean)

    hooks = [
        place[0].register_forward_hook(lambda _module, _inputs, said, norm=place[1]: restore(norm, said))
        for place in places
    ]
    net.eval()(batch)
    for hook in hooks:
        hook.remove()
    return net


def _shaped(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    if tensor.shape != like.shape:  # copy_ would broadcast
        raise ValueError(f"weights {tuple(tensor.shape)} where {tuple(like.shape)} belong")
    return tensor
