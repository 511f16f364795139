"""Channels that are seldom above zero go, and with them all that reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from calibration.optimizing.rules import RULES
from jetsel.base.errors import CalibrationError
from jetsel.train.optimize.activations import Rule, chosen, operations, prune
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


def test_a_network_of_outputs_alone_is_refused(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(5, 2))
    with pytest.raises(CalibrationError, match="no channel can be removed"):
        prune(net, torch.zeros(2, 5), Rule(), untrained, [torch.zeros(2, 5)], [net[0]], share=0.5)
