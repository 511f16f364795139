"""Methods that make a network cheaper: what they take away, and that a killed run goes on and gives the same file."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import ModelProto
from torch import nn

from calibration.optimizing.changes import CHANGES
from calibration.optimizing.making import operations
from calibration.optimizing.rules import RULES, Rule, at_most, prune_by
from calibration.optimizing.separable import separable
from jetsel.base.errors import CalibrationError
from jetsel.train.optimize import activations, steps
from jetsel.train.optimize.activations import PrunableNetwork, inactive, prune
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.train.optimize.distil import DistillationPlan, distil
from jetsel.train.optimize.factorise import low_rank, one_d
from jetsel.train.optimize.steps import Reduction, last_layer, to_torch
from jetsel.zoo import STARTER
from jetsel.zoo.export import export
from jetsel.zoo.manifest import read_manifest
from jetsel.zoo.onnx_model import model_in, read_model

pytestmark = pytest.mark.export
SPEC = read_manifest(STARTER / "xs.json").input
PARENT = with_fixed_size(read_model(STARTER / "xs.onnx"), 64, 64)
LEVELS = np.random.default_rng(1).integers(0, 256, (96, 3, 64, 64), dtype=np.uint8)


def lesson(epochs: int) -> DistillationPlan:
    return DistillationPlan(LEVELS, SPEC, to_torch(PARENT, "xs"), epochs, 600.0, 7)


def ignored(_what: str, _done: int, _total: int) -> None: ...


def stopped_in_epoch(number: int) -> Callable[[str, int, int], None]:
    def tell(what: str, _done: int, _total: int) -> None:
        if what.startswith(f"training, epoch {number} "):
            raise KeyboardInterrupt

    return tell


def made(
    method: str, share: float, taught: DistillationPlan, folder: Path, tell: Callable[[str, int, int], None] = ignored
) -> tuple[bytes, str]:
    change = {**CHANGES, **steps.CHANGES}[method]
    return steps.train_reduced(PARENT, "xs", Reduction(method, share, change), taught, folder, tell)


@pytest.mark.parametrize("method", ["factorise", "prune"])
def test_a_killed_run_goes_on_and_gives_the_same_file(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "CYCLE_STEPS", 2)
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole, _ = made(method, 0.6, lesson(3), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        made(method, 0.6, lesson(3), tmp_path / "killed", stopped_in_epoch(3))
    resumed, words = made(method, 0.6, lesson(3), tmp_path / "killed")
    assert "3 epochs of distillation on 96 images" in words
    cheaper = model_in(resumed, "made")
    assert operations(with_fixed_size(cheaper, 64, 64)) < 0.75 * operations(PARENT)
    batch = np.random.default_rng(2).normal(size=(4, 3, 64, 64)).astype(np.float32)
    answered = [onnxruntime.InferenceSession(one).run(["logits"], {"image": batch})[0] for one in (whole, resumed)]
    np.testing.assert_allclose(answered[0], answered[1], atol=1e-3)


def test_distillation_brings_a_network_nearer_to_its_teacher(tmp_path: Path) -> None:
    from jetsel.train.optimize.factorise import one_d

    taught, net = lesson(6), to_torch(PARENT, "xs")
    one_d(net, 0.5)
    shown = torch.randn(16, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        due = taught.teacher(shown)
        before = (net(shown) - due).abs().mean()
    assert distil(net, taught, tmp_path / "state.pt", ignored).epochs == 6
    with torch.no_grad():
        assert (net(shown) - due).abs().mean() < before


def test_fewer_epochs_are_trained_where_time_is_short(tmp_path: Path) -> None:
    done = distil(to_torch(PARENT, "xs"), replace(lesson(9), most_s=0.0), tmp_path / "state.pt", ignored)
    assert (done.epochs, done.of) == (1, 1)


def test_a_method_that_finds_nothing_to_do_says_so(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="no layer that nothing makes cheaper"):
        steps.train_reduced(PARENT, "xs", Reduction("nothing", 0.5, lambda *_: 0), lesson(1), tmp_path, ignored)


class Shuffled(nn.Module):
    """Channels change their places between two convolutions, by a reshape to sizes that the file fixes."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 24, 3, 2, 1)
        self.last = nn.Linear(24, 100)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        seen = self.before(batch).relu()
        mixed = seen.reshape(-1, 2, 8, 32, 32).transpose(1, 2).reshape(-1, 16, 32, 32)
        answered: torch.Tensor = self.last(self.after(mixed).relu().mean((2, 3)))
        return answered


def test_a_network_whose_channels_cannot_be_followed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    export(Shuffled(), tmp_path / "shuffled.onnx", 64, 64)
    parent = with_fixed_size(read_model(tmp_path / "shuffled.onnx"), 64, 64)
    taught = replace(lesson(1), teacher=to_torch(parent, "shuffled"))
    with pytest.raises(CalibrationError, match=r"another method, or .*--method int8"):
        steps.train_reduced(
            parent, "shuffled", Reduction("prune", 0.5, steps.prune_channels), taught, tmp_path, ignored
        )
    factorise = Reduction("factorise", 0.5, steps.factorise_layers)
    assert "factorise" in steps.train_reduced(parent, "shuffled", factorise, taught, tmp_path, ignored)[1]


def test_an_operator_that_torch_has_no_counterpart_of_is_named() -> None:
    model = ModelProto()
    model.CopyFrom(PARENT)
    next(node for node in model.graph.node if node.op_type == "Relu").op_type = "Shrink"
    with pytest.raises(CalibrationError, match=r"Shrink.*--method int8"):
        to_torch(model, "own")


EXAMPLE = torch.zeros(2, 3, 64, 64)
SHOWN = [torch.randn(8, 3, 64, 64, generator=torch.Generator().manual_seed(2))]


def untrained(_net: nn.Module, *_penalty: Callable[[nn.Module], torch.Tensor]) -> None:
    """What trains where weights are to stay."""


def of_two_layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))


def test_units_that_are_never_above_zero_go_and_the_answers_stay() -> None:
    net = of_two_layers()
    net[0].bias.data[[2, 7, 11]] = -100.0
    batch = torch.randn(64, 5)
    before = net(batch)
    assert prune_by(Rule(), PrunableNetwork(net, batch[:2], [batch], [net[2]]), untrained) == 3
    assert net[0].out_features == net[2].in_features == 9
    torch.testing.assert_close(net(batch), before)


@pytest.mark.parametrize("way", [prune, partial(prune_by, Rule())], ids=["the product's", "the laboratory's"])
def test_a_network_with_shortcuts_is_pruned_to_its_share(way: Callable[..., int]) -> None:
    net = to_torch(with_fixed_size(read_model(STARTER / "s.onnx"), 64, 64), "s")
    before = activations.count_operations(net, EXAMPLE)
    assert way(PrunableNetwork(net, EXAMPLE, SHOWN, [last_layer(net)]), untrained, share=0.5) > 0
    assert 0.35 * before < activations.count_operations(net, EXAMPLE) <= 0.5 * before
    assert net(SHOWN[0]).shape == (8, 100)
    widths = [layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    assert all(width % 4 == 0 for width in widths if width > 16)


def test_the_combined_rule_penalises_distorts_and_takes_outliers() -> None:
    rule, net = RULES["combined"], nn.Sequential(nn.Linear(3, 4))
    before = net[0].weight.detach().clone()
    assert float(rule.penalty(net).detach()) == pytest.approx(1e-5 * float(before.abs().sum()))
    rule.before_counting(net, torch.Generator().manual_seed(1))
    assert not torch.equal(before, net[0].weight)
    shares = torch.tensor([0.5] * 9 + [0.0])
    assert at_most(rule.scores(shares), rule.bound) == [9], "2.85 deviations below the mean of its layer"


def test_some_of_each_layer_stay() -> None:
    assert len(inactive(torch.zeros(40), 0.5)) == 40 - 8  # 5 would be an eighth; they stay in fours
    assert len(at_most(torch.zeros(40), 0.5)) == 39


def test_a_network_of_outputs_alone_is_refused(tmp_path: Path) -> None:
    net, zeros = nn.Sequential(nn.Linear(5, 2)), torch.zeros(2, 5)
    with pytest.raises(CalibrationError, match="no channel can be removed"):
        prune(PrunableNetwork(net, zeros, [zeros], [net[0]]), untrained, 0.5)


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
