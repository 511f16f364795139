"""The architectures of the starter family: plain residual networks whose widths and depths make the ladder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ConvNorm(nn.Sequential):
    """A convolution without bias and its batch normalisation; ONNX export folds the two into one."""

    def __init__(self, wide_in: int, wide_out: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(wide_in, wide_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(wide_out),
        )


class Block(nn.Module):
    """Two 3 x 3 convolutions around a shortcut (He et al. 2016, the basic block); a strided one averages first."""

    def __init__(self, wide_in: int, wide_out: int, stride: int) -> None:
        super().__init__()
        self.first = ConvNorm(wide_in, wide_out, 3, stride)
        self.second = ConvNorm(wide_out, wide_out, 3)
        nn.init.zeros_(self.second[1].weight)  # each block starts as the identity (Goyal et al. 2017, section 5.1)
        shortcut: list[nn.Module] = []
        if stride > 1:
            shortcut.append(nn.AvgPool2d(stride, ceil_mode=True))  # odd sides round up, as the convolution's do
        if stride > 1 or wide_in != wide_out:
            shortcut.append(ConvNorm(wide_in, wide_out, 1))
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """(n, wide_in, h, w) -> (n, wide_out, h / stride, w / stride)."""
        y = F.relu(self.first(x), inplace=True)
        return F.relu(self.second(y) + self.shortcut(x), inplace=True)


@dataclass(frozen=True)
class Shape:
    """One architecture: the stem's stride and width, then (width, blocks, stride of the first block) per stage."""

    stem: tuple[tuple[int, int], ...]
    stages: tuple[tuple[int, int, int], ...]


SHAPES = {
    "xs": Shape(stem=((8, 2),), stages=((14, 1, 2), (24, 1, 2), (56, 1, 2))),
    "s": Shape(stem=((16, 2),), stages=((32, 1, 2), (64, 1, 2), (128, 1, 2))),
    "m": Shape(stem=((24, 2),), stages=((56, 1, 2), (112, 1, 2), (224, 1, 2))),
    "l": Shape(stem=((32, 2), (32, 1)), stages=((80, 2, 2), (144, 2, 2), (288, 1, 2))),
    "xl": Shape(stem=((32, 2), (48, 1)), stages=((112, 2, 2), (232, 3, 2), (464, 1, 2))),
}
SHAPES |= {"s-night": SHAPES["s"], "m-night": SHAPES["m"]}


class Net(nn.Module):
    """A classifier with two outputs: logits (n, classes) and the embedding they are read from (n, width)."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = 3
        for wide_out, stride in shape.stem:
            layers += [ConvNorm(width, wide_out, 3, stride), nn.ReLU(inplace=True)]
            width = wide_out
        for wide_out, blocks, first_stride in shape.stages:
            for index in range(blocks):
                layers.append(Block(width, wide_out, first_stride if index == 0 else 1))
                width = wide_out
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 3, h, w) normalised -> logits and embedding."""
        embedding = self.body(batch).mean((2, 3))
        return self.head(embedding), embedding


def multiply_accumulates(net: nn.Module, height_px: int, width_px: int) -> int:
    """Multiply-accumulates of the convolutions and linear layers for one image, counted by running one."""
    total = 0

    def count(module: nn.Module, _inputs: object, output: Tensor) -> None:
        nonlocal total
        weight = module.weight
        assert isinstance(weight, Tensor)
        total += weight[0].numel() * output[0].numel()

    hooks = [m.register_forward_hook(count) for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    training = net.training
    with torch.no_grad():
        net.eval()(torch.zeros(1, 3, height_px, width_px))
    net.train(training)
    for hook in hooks:
        hook.remove()
    return total
