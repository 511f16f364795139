"""The operation counts of the thesis's sections 2.3 to 2.6, its formulas beside counting; and those of Table 2.3."""

from __future__ import annotations

import torch
from torch import nn

from jetsel.train.optimize.activations import count_operations

N, K, L, SIDE = 3, 64, 96, 14  # a kernel's side, channels in and out, and the side of the picture
P, FILTERS, RANK, ROWS = 40, 2, 24, 5

Table = tuple[str, str, list[str]]


def counts() -> list[Table]:
    """Return both tables: title, columns, rows."""
    return [
        (
            "Operation counts, a place or a row",
            "section | what | thesis writes | that is | counted",
            [" | ".join(row) for row in _formulas()],
        ),
        (
            "Table 2.3, 10^9 multiply-accumulates at 224 x 224",
            "network | thesis | counted",
            [f"ResNet-34 | 3.6 | {resnet(34) / 1e9:.2f}", f"ResNet-50 | 3.8 | {resnet(50) / 1e9:.2f}"],
        ),
    ]


def _formulas() -> list[list[str]]:
    places = SIDE * SIDE
    whole = nn.Conv2d(K, L, N, padding=1)
    parts = nn.Sequential(nn.Conv2d(K, P, (1, N), padding=(0, 1)), nn.Conv2d(P, L, (N, 1), padding=(1, 0)))
    deep = nn.Sequential(nn.Conv2d(K, K * FILTERS, N, padding=1, groups=K), nn.Conv2d(K * FILTERS, L, 1))
    dense = nn.Sequential(nn.Linear(K, RANK, bias=False), nn.Linear(RANK, L, bias=False))
    picture, row = torch.zeros(1, K, SIDE, SIDE), torch.zeros(1, K)

    def said(formula: int, net: nn.Module, example: torch.Tensor, of: int) -> list[str]:
        return [f"{formula:,}", f"{_counted(net, example) / of:,.0f}"]

    product = _counted(dense, row) * ROWS
    return [
        ["2.3.1", "N x N convolution", "N^2 KL", *said(N * N * K * L, whole, picture, places)],
        ["2.3.1", f"1 x N and N x 1, P = {P}", "NP (L + K)", *said(N * P * (L + K), parts, picture, places)],
        [
            "2.4.1",
            f"separable, I = {FILTERS}",
            "I (K N^2 + L)",
            *said(FILTERS * (K * N * N + L), deep, picture, places),
        ],
        ["2.4.1", "the same", "(ours) K I N^2 + K I L", *said(K * FILTERS * (N * N + L), deep, picture, places)],
        ["2.6", f"K = {ROWS} rows, rank {RANK}", "NL (K + M)", f"{K * RANK * (ROWS + L):,}", f"{product:,}"],
        ["2.6", "the same", "(ours) KL (N + M)", f"{ROWS * RANK * (K + L):,}", f"{product:,}"],
    ]


def _counted(net: nn.Module, example: torch.Tensor) -> int:
    """Return the multiply-accumulates of layers without bias."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            layer.bias = None
    return count_operations(net, example)


def resnet(layers: int) -> int:
    """Return the multiply-accumulates of He et al.'s network of 34 or 50 layers, by its structure (Table 2.3)."""
    total, wide_in, side = 49 * 3 * 64 * 112 * 112, 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        wide_out = width if layers == 34 else 4 * width
        for block in range(blocks):
            before = side
            if stage and not block:
                side //= 2
            if layers == 34:
                total += 9 * (wide_in * width + width * wide_out) * side * side
            else:  # the stride is the first convolution's, as in the paper
                total += (wide_in * width + 9 * width * width + width * wide_out) * side * side
            if wide_in != wide_out or before != side:
                total += wide_in * wide_out * side * side * (layers != 34)  # 34 layers: identity, padded with zeros
            wide_in = wide_out
    return total + wide_in * 1000
