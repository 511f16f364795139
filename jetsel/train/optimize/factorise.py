"""Replace layers by pairs of cheaper ones: a large matrix becomes a product of two small ones.

Çallı, Optimizing Neural Networks for Mobile Devices (2017), sections 2.3.1 and 2.6. `low_rank` and `one_d` change a
network in place, leave layers that would not become cheaper, and return the number of replaced layers. share: of the
operations that stays.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def low_rank(net: nn.Module, share: float) -> int:
    """Split each dense layer and 1 x 1 convolution in two, by its largest singular values (section 2.6.1).

    N x M weights take NM multiplications; N x L and L x M weights take L (N + M). L is chosen so that `share` of the
    multiplications stays. (The thesis writes NL (K + M) for the whole product, and means KL (N + M).)
    """

    def split(layer: nn.Module) -> nn.Module | None:
        wide_out, wide_in = _weight(layer).shape[:2]
        rank = int(share * wide_in * wide_out / (wide_in + wide_out))
        if rank < 1:
            return None
        first_weight, second_weight = factor_by_svd(_weight(layer).reshape(wide_out, wide_in), rank)
        if isinstance(layer, nn.Linear):
            first: nn.Module = nn.Linear(wide_in, rank, bias=False)
            second: nn.Module = nn.Linear(rank, wide_out)
        else:
            assert isinstance(layer, nn.Conv2d)
            first = nn.Conv2d(wide_in, rank, 1, layer.stride, bias=False)  # early stride: fewer places
            second = nn.Conv2d(rank, wide_out, 1)
            first_weight, second_weight = first_weight[..., None, None], second_weight[..., None, None]
        return sequence_of((first, first_weight, None), (second, second_weight, bias_of(layer)))

    return replace_layers(net, lambda layer: isinstance(layer, nn.Linear) or is_plain_convolution(layer, 1), split)


def one_d(net: nn.Module, share: float) -> int:
    """Split each N x N convolution into 1 x N and N x 1, with P channels between them (section 2.3.1).

    With K input and L output channels, the convolution takes N^2 KL multiplications per place, and the pair takes
    NP (K + L), so P = share x NKL / (K + L). The nearest such pair comes from the largest singular values of the
    weights as a matrix of (L N) x (K N).
    """

    def split(layer: nn.Module) -> nn.Module | None:
        assert isinstance(layer, nn.Conv2d)
        wide_out, wide_in, high, wide = layer.weight.shape
        inner = int(share * high * wide_in * wide_out / (wide_in + wide_out))
        if inner < 1:
            return None
        matrix = layer.weight.detach().permute(0, 2, 1, 3).reshape(wide_out * high, wide_in * wide)
        inner = min(inner, *matrix.shape)
        first_weight, second_weight = factor_by_svd(matrix, inner)
        (stride_down, stride_right), (pad_top, pad_left) = layer.stride, padding_of(layer)
        first = nn.Conv2d(wide_in, inner, (1, wide), (1, stride_right), (0, pad_left), bias=False)
        second = nn.Conv2d(inner, wide_out, (high, 1), (stride_down, 1), (pad_top, 0))
        return sequence_of(
            (first, first_weight.reshape(inner, wide_in, 1, wide), None),
            (second, second_weight.reshape(wide_out, high, inner).permute(0, 2, 1)[..., None], bias_of(layer)),
        )

    return replace_layers(net, lambda layer: is_plain_convolution(layer, None), split)


def factor_by_svd(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the factors of the best approximation of `matrix`, (n, m), of this rank: (rank, m) and (n, rank)."""
    left_vectors, values, right_vectors = torch.linalg.svd(matrix.detach(), full_matrices=False)
    roots = values[:rank].sqrt()  # shared equally, so that both factors learn equally fast
    return roots[:, None] * right_vectors[:rank], left_vectors[:, :rank] * roots


def is_plain_convolution(layer: nn.Module, side: int | None) -> bool:
    """Whether a layer is an ungrouped, undilated convolution. side: of its square kernel, None for any above 1."""
    if not isinstance(layer, nn.Conv2d) or layer.groups > 1 or set(layer.dilation) != {1}:
        return False
    if side is None:
        return bool(max(layer.kernel_size) > 1)
    return bool(layer.kernel_size == (side, side)) and padding_of(layer) == (0, 0)


def padding_of(layer: nn.Conv2d) -> tuple[int, int]:
    """Return the padding at the top and at the left, in pixels."""
    assert not isinstance(layer.padding, str)  # the conversion from ONNX makes numbers
    return layer.padding[0], layer.padding[1]


def _weight(layer: nn.Module) -> Tensor:
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    return layer.weight.detach()


def bias_of(layer: nn.Module) -> Tensor:
    """Return the bias, zeros if there is none."""
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    return torch.zeros(len(layer.weight)) if layer.bias is None else layer.bias.detach()


def sequence_of(*layers: tuple[nn.Module, Tensor, Tensor | None]) -> nn.Sequential:
    """Set weights and biases, and return the layers in sequence. layers: each with its weight, and its bias or None."""
    with torch.no_grad():
        for layer, weight, bias in layers:
            layer.weight.copy_(weight)
            if bias is not None:
                layer.bias.copy_(bias)
    return nn.Sequential(*(layer for layer, _, _ in layers))


def replace_layers(
    net: nn.Module, accepts: Callable[[nn.Module], bool], replacement_of: Callable[[nn.Module], nn.Module | None]
) -> int:
    """Replace each layer that is accepted by its replacement, in place, if that has fewer weights; return how many.

    replacement_of: returns None for a layer that cannot be replaced.
    """
    count = 0
    for name, layer in [(name, layer) for name, layer in net.named_modules() if accepts(layer)]:
        replacement = replacement_of(layer)
        if replacement is not None and _count_weights(replacement) < _count_weights(layer):
            net.set_submodule(name, replacement)
            count += 1
    return count


def _count_weights(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters() if parameter.ndim > 1)
