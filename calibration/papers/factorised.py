"""Separable convolutions and SVD on a real model: `python -m calibration.papers.factorised LEARN TEST`.

The starter family's `l` is factorised as in the thesis's sections 2.4.1 and 2.6.1, fine-tuned towards `l`'s answers on
LEARN as calibration.optimizing does, and judged on TEST: folders with a folder for each class. Epochs that are done
are kept in --work, so that the same command continues. Writes results/thesis-factorised.md. Needs pip install
'jetsel[export]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import nn

from calibration.optimizing.separable import separable
from calibration.papers.cheaper import COLUMNS, add_arguments, trial
from calibration.papers.tables import table, written
from jetsel.train.optimize.factorise import low_rank, one_d

PARENT = "l"
SHARE = 0.7  # of the multiply-accumulates of each layer that is changed


def kernels(net: nn.Module, share: float) -> int:
    """Make an N x N convolution with P channels out and a 1 x 1 one of each N x N convolution, by its singular values.

    Section 2.6.1 with the kernel as the matrix of L rows and N^2 K columns, which a convolution multiplies by each
    place: P = share x N^2 KL / (N^2 K + L). Return how many layers were replaced.
    """
    count = 0
    for name, layer in list(net.named_modules()):
        if not isinstance(layer, nn.Conv2d) or max(layer.kernel_size) == 1:
            continue
        weight = layer.weight.detach()
        wide_out, rest = len(weight), weight[0].numel()
        between = min(int(share * rest * wide_out / (rest + wide_out)), wide_out)
        left, values, right = torch.linalg.svd(weight.reshape(wide_out, rest), full_matrices=False)
        roots = values[:between].sqrt()
        first = nn.Conv2d(
            layer.in_channels,
            between,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            bias=False,  # type: ignore[arg-type]
        )
        second = nn.Conv2d(between, wide_out, 1)
        with torch.no_grad():
            first.weight.copy_((roots[:, None] * right[:between]).reshape(first.weight.shape))
            second.weight.copy_((left[:, :between] * roots)[..., None, None])
            assert second.bias is not None
            second.bias.copy_(torch.zeros(wide_out) if layer.bias is None else layer.bias.detach())
        net.set_submodule(name, nn.Sequential(first, second))
        count += 1
    return count


METHODS: dict[str, tuple[Callable[[nn.Module, float], int], bool]] = {
    "1 x N and N x 1": (one_d, False),
    "SVD of the dense layer and the 1 x 1 convolutions": (low_rank, False),
    "separable convolutions": (separable, True),
    "SVD of each 3 x 3 kernel": (kernels, True),
}
"""Each with whether it is fine-tuned: calibration.starter.optimize tunes 1 x N; SVD of dense layers saves 1 %."""


def main() -> None:
    """Factorise, fine-tune, judge, and write the table after each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, "build/factorised")
    found = trial(PARENT, parser.parse_args())
    for name, (change, is_tuned) in METHODS.items():
        net = found.network()
        change(net, SHARE)
        found.add(name, net, "0")
        if is_tuned:
            found.tune(f"{name}, fine-tuned", net)
        title = f"`{PARENT}`, factorised; {len(found.truth)} test images, fine-tuned on {len(found.lesson.levels)}"
        written("thesis-factorised", table(title, f"method | {COLUMNS.format(PARENT, PARENT)}", found.rows()))


if __name__ == "__main__":
    main()
