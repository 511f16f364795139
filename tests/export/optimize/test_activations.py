"""Channels that are seldom above zero go, and with them all that reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from calibration.optimizing.rules import RULES, Distorted, Regularised
from jetsel.base.errors import CalibrationError
from jetsel.train.optimize.activations import Rule, chosen, counted, operations, prune
from jetsel.train.optimize.steps import last_layer, network_of
from jetsel.zoo import STARTER
from jetsel.zoo.graph import for_size
from jetsel.zoo.onnx_model import read_model

pytestmark = pytest.mark.export
EXAMPLE = torch.zeros(2, 3, 64, 64)
SHOWN = [torch.randn(8, 3, 64, 64, generator=torch.Generator().manual_seed(2))]


def untrained(_net: nn.Module, _penalty: Callable[[nn.Module], torch.Tensor]) -> None:
    """What trains where weights are to stay."""


def of_two_layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))


def test_units_that_are_never_above_zero_go_and_the_answers_stay() -> None:
    net = of_two_layers()
    net[0].bias.data[[2, 7, 11]] = -100.0
    batch = torch.randn(64, 5)
    before = net(batch)
    assert prune(net, batch[:2], Rule(), untrained, [batch], [net[2]]) == 3
    assert net[0].out_features == net[2].in_features == 9
    torch.testing.assert_close(net(batch), before)


def test_outliers_are_those_two_deviations_below_their_layer() -> None:
    net = of_two_layers()
    net[0].weight.data.zero_()
    net[0].bias.data.fill_(1.0)
    net[0].bias.data[4] = -1.0  # never, among eleven that always are: 3.2 deviations
    batch = torch.randn(16, 5)
    ((_, scores),) = counted(net, batch[:2], [batch], [net[2]], RULES["outliers"])
    assert scores[4] == pytest.approx(-11 / 12 / (1 / 12) ** 0.5, rel=1e-3)
    assert prune(net, batch[:2], RULES["outliers"], untrained, [batch], [net[2]]) == 1


def test_a_network_with_shortcuts_is_pruned_to_its_share() -> None:
    net = network_of(for_size(read_model(STARTER / "s.onnx"), 64, 64), "s")
    before = operations(net, EXAMPLE)
    prune(net, EXAMPLE, RULES["plain"], untrained, SHOWN, [last_layer(net)], share=0.5)
    assert 0.35 * before < operations(net, EXAMPLE) <= 0.5 * before
    assert net(SHOWN[0]).shape == (8, 100)
    widths = [layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    assert all(width % 4 == 0 for width in widths if width > 16)


def test_some_of_each_layer_stay() -> None:
    layer = nn.Linear(1, 40)
    (rows,) = chosen([(layer, torch.zeros(40))], 0.5, 1 / 8)
    assert len(rows) == 40 - 8  # 5 would be an eighth; they stay in fours
    (rows,) = chosen([(layer, torch.zeros(40))], 0.5, 0.0, even=False)
    assert len(rows) == 39


def test_noise_is_scaled_by_the_variance_or_by_the_weights_too() -> None:
    net = nn.Sequential(nn.Linear(200, 200))
    net[0].weight.data = 0.1 * torch.randn(200, 200, generator=torch.Generator().manual_seed(4))
    before = net[0].weight.detach().clone()
    Distorted(noise=None).before_counting(net, torch.Generator().manual_seed(5))
    moved = net[0].weight.detach() - before
    assert moved.abs().max().item() == pytest.approx(1 - before.var().item(), rel=1e-3)
    net[0].weight.data = before.clone()
    Distorted(noise=0.5).before_counting(net, torch.Generator().manual_seed(5))
    moved = net[0].weight.detach() - before
    assert moved.abs().max().item() == pytest.approx(0.5 * 0.1 * (1 - 0.01), rel=0.02)


def test_training_is_given_the_penalty_of_the_rule() -> None:
    net, seen = of_two_layers(), []

    def train(trained: nn.Module, penalty: Callable[[nn.Module], torch.Tensor]) -> None:
        seen.append(float(penalty(trained).detach()))

    prune(net, torch.zeros(2, 5), Regularised(l1=0.5), train, [torch.zeros(2, 5)], [net[2]])
    weights = sum(float(weight.detach().abs().sum()) for weight in of_two_layers().parameters() if weight.ndim > 1)
    assert seen[0] == pytest.approx(0.5 * weights, rel=1e-5)


def test_a_network_of_outputs_alone_is_refused(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(5, 2))
    with pytest.raises(CalibrationError, match="no channel can be removed"):
        prune(net, torch.zeros(2, 5), Rule(), untrained, [torch.zeros(2, 5)], [net[0]], share=0.5)
