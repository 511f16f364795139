"""Depthwise and 1 x 1 convolutions in the place of N x N ones. Çallı (2017), section 2.4.1."""

from __future__ import annotations

import torch
from torch import nn

from jetsel.train.optimize.factorise import (
    bias_of,
    factor_by_svd,
    is_plain_convolution,
    padding_of,
    replace_layers,
    sequence_of,
)


def separable(net: nn.Module, share: float) -> int:
    """Make a depthwise and a 1 x 1 convolution of each N x N one (section 2.4.1).

    I filters for each of K channels, and L channels out, take K I N^2 + K I L multiplications a place. (The thesis
    writes I (K N^2 + L), which leaves K out of the second half.) The filters of a channel are the largest singular
    vectors of all that its weights say to the L channels; one at least.
    """

    def halves(layer: nn.Module) -> nn.Module | None:
        assert isinstance(layer, nn.Conv2d)
        wide_out, wide_in, high, wide = layer.weight.shape
        filters = max(1, int(share * high * wide * wide_out / (high * wide + wide_out)))
        filters = min(filters, high * wide, wide_out)
        by_channel = layer.weight.detach().permute(1, 0, 2, 3).reshape(wide_in, wide_out, high * wide)
        pairs = [factor_by_svd(one, filters) for one in by_channel]
        depthwise = torch.stack([before for before, _ in pairs]).reshape(wide_in * filters, 1, high, wide)
        pointwise = torch.cat([after for _, after in pairs], dim=1)[..., None, None]
        first = nn.Conv2d(
            wide_in, wide_in * filters, (high, wide), layer.stride, padding_of(layer), groups=wide_in, bias=False
        )
        return sequence_of(
            (first, depthwise, None), (nn.Conv2d(wide_in * filters, wide_out, 1), pointwise, bias_of(layer))
        )

    return replace_layers(net, lambda layer: is_plain_convolution(layer, None), halves)
