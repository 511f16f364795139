"""Layers become cheaper ones: the same where nothing is lost, and the nearest where something is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from calibration.optimizing.separable import separable
from jetsel.train.optimize.factorise import low_rank, one_d

pytestmark = pytest.mark.export
BATCH = torch.randn(2, 16, 9, 11, generator=torch.Generator().manual_seed(1))


def weights_of(rows: int, columns: int, rank: int) -> torch.Tensor:
    """A matrix of this rank."""
    draw = torch.Generator().manual_seed(rank)
    return torch.randn(rows, rank, generator=draw) @ torch.randn(rank, columns, generator=draw)


def numbers(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters() if weight.ndim > 1)


@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
def test_a_kernel_of_few_ranks_becomes_two_of_one_dimension(stride: tuple[int, int]) -> None:
    layer = nn.Conv2d(16, 24, 3, stride, 1)
    laid_out = weights_of(24 * 3, 16 * 3, 10)
    layer.weight.data = laid_out.reshape(24, 3, 16, 3).permute(0, 2, 1, 3).contiguous()
    net = nn.Sequential(layer, nn.ReLU())
    before, count = net(BATCH), numbers(net)
    assert one_d(net, 0.5) == 1
    torch.testing.assert_close(net(BATCH), before, atol=1e-3, rtol=1e-3)
    between = int(0.5 * 3 * 16 * 24 / (16 + 24))  # P of section 2.3.1
    assert numbers(net) == 3 * between * (16 + 24) < 0.51 * count
    assert [part.kernel_size for part in net[0]] == [(1, 3), (3, 1)]


def test_dense_and_pointwise_layers_become_the_nearest_of_a_lower_rank() -> None:
    point, dense = nn.Conv2d(16, 32, 1, 2), nn.Linear(40, 60)
    point.weight.data = weights_of(32, 16, 3)[..., None, None]
    net = nn.Sequential(point, nn.Flatten(), nn.Linear(32 * 5 * 6, 40), dense)
    before, matrix = net[:1](BATCH), dense.weight.detach().clone()
    assert low_rank(net, 0.5) == 3
    torch.testing.assert_close(net[:1](BATCH), before, atol=1e-3, rtol=1e-3)
    made = net[3][1].weight @ net[3][0].weight
    values = torch.linalg.svdvals(matrix)
    rank = int(0.5 * 40 * 60 / 100)
    torch.testing.assert_close(torch.linalg.norm(matrix - made), values[rank:].square().sum().sqrt(), rtol=1e-3, atol=0)
    torch.testing.assert_close(net[3][1].bias, dense.bias)


def test_what_would_not_be_cheaper_stays() -> None:
    grouped, few = nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(1, 1, 3)
    net = nn.Sequential(grouped, few)
    assert one_d(net, 2.0) + separable(net, 1.0) + low_rank(net, 1.0) == 0
    assert list(net) == [grouped, few]
