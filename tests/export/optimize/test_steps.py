"""A method that trains: each step is kept, a killed run goes on, and the file answers nearly as its parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import ModelProto
from torch import nn

from calibration.optimizing.changes import CHANGES
from jetsel.base.errors import CalibrationError
from jetsel.train.optimize import steps
from jetsel.train.optimize.distil import Lesson, distil
from jetsel.train.optimize.steps import network_of
from jetsel.zoo import STARTER
from jetsel.zoo.export import export
from jetsel.zoo.graph import for_size, operations
from jetsel.zoo.manifest import read_manifest
from jetsel.zoo.onnx_model import model_in, read_model

pytestmark = pytest.mark.export
SPEC = read_manifest(STARTER / "xs.json").input
PARENT = for_size(read_model(STARTER / "xs.onnx"), 64, 64)
LEVELS = np.random.default_rng(1).integers(0, 256, (96, 3, 64, 64), dtype=np.uint8)


def lesson(epochs: int) -> Lesson:
    return Lesson(LEVELS, SPEC, network_of(PARENT, "xs"), epochs, 600.0, 7)


def ignored(_what: str, _done: int, _total: int) -> None: ...


def stopped_in_epoch(number: int) -> Callable[[str, int, int], None]:
    def tell(what: str, _done: int, _total: int) -> None:
        if what.startswith(f"training, epoch {number} "):
            raise KeyboardInterrupt

    return tell


def made(
    method: str, share: float, taught: Lesson, folder: Path, tell: Callable[[str, int, int], None] = ignored
) -> steps.Trained:
    return steps.trained(PARENT, "xs", method, share, {**CHANGES, **steps.CHANGES}[method], taught, folder, tell)


@pytest.mark.parametrize("method", ["factorise", "prune"])
def test_a_killed_run_goes_on_and_gives_the_same_file(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "CYCLE_STEPS", 2)
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = made(method, 0.6, lesson(3), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        made(method, 0.6, lesson(3), tmp_path / "killed", stopped_in_epoch(3))
    resumed = made(method, 0.6, lesson(3), tmp_path / "killed")
    assert "3 epochs of distillation on 96 images" in resumed.words
    cheaper = model_in(resumed.content, "made")
    assert operations(for_size(cheaper, 64, 64)) < 0.75 * operations(PARENT)
    batch = np.random.default_rng(2).normal(size=(4, 3, 64, 64)).astype(np.float32)
    answered = [
        onnxruntime.InferenceSession(one.content).run(["logits"], {"image": batch})[0] for one in (whole, resumed)
    ]
    np.testing.assert_allclose(answered[0], answered[1], atol=1e-3)


def test_distillation_brings_a_network_nearer_to_its_teacher(tmp_path: Path) -> None:
    from jetsel.train.optimize.factorise import one_d

    taught, net = lesson(6), network_of(PARENT, "xs")
    one_d(net, 0.5)
    shown = torch.randn(16, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        due = taught.teacher(shown)
        before = (net(shown) - due).abs().mean()
    assert distil(net, taught, tmp_path / "state.pt", ignored).epochs == 6
    with torch.no_grad():
        assert (net(shown) - due).abs().mean() < before


def test_fewer_epochs_are_trained_where_time_is_short(tmp_path: Path) -> None:
    done = distil(network_of(PARENT, "xs"), replace(lesson(9), most_s=0.0), tmp_path / "state.pt", ignored)
    assert (done.epochs, done.of) == (1, 1)


def test_a_method_that_finds_nothing_to_do_says_so(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="no layer that nothing makes cheaper"):
        steps.trained(PARENT, "xs", "nothing", 0.5, lambda *_: 0, lesson(1), tmp_path, ignored)


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
    parent = for_size(read_model(tmp_path / "shuffled.onnx"), 64, 64)
    taught = replace(lesson(1), teacher=network_of(parent, "shuffled"))
    with pytest.raises(CalibrationError, match=r"another method, or .*--method int8"):
        steps.trained(parent, "shuffled", "prune", 0.5, steps.pruned, taught, tmp_path, ignored)
    done = steps.trained(parent, "shuffled", "factorise", 0.5, steps.factorised, taught, tmp_path, ignored)
    assert "factorise" in done.words


def test_an_operator_that_torch_has_no_counterpart_of_is_named() -> None:
    model = ModelProto()
    model.CopyFrom(PARENT)
    next(node for node in model.graph.node if node.op_type == "Relu").op_type = "Shrink"
    with pytest.raises(CalibrationError, match=r"Shrink.*--method int8"):
        network_of(model, "own")
