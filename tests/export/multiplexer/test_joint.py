"""Models trained on together: embeddings lie by who is right, answers stay, and a killed run goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from jetsel.image import InputSpec
from jetsel.train.loop import Course
from jetsel.train.multiplexer.joint import Member, Pupils, projected_of, seen_by_all, train_jointly
from jetsel.train.multiplexer.losses import distance
from jetsel.train.optimize.graph import for_size
from jetsel.train.optimize.network import network_of
from jetsel.zoo import STARTER
from jetsel.zoo.manifest import read_manifest
from jetsel.zoo.onnx_model import read_model

pytestmark = pytest.mark.export
SPEC: InputSpec = read_manifest(STARTER / "xs.json").input
DRAW = np.random.default_rng(1)
PUPILS = Pupils(DRAW.integers(0, 256, (64, 3, 64, 64), dtype=np.uint8), DRAW.integers(0, 100, 64))


def members() -> torch.nn.ModuleList:
    torch.manual_seed(1)
    models = (for_size(read_model(STARTER / f"{name}.onnx"), 64, 64) for name in ("xs", "s"))
    return torch.nn.ModuleList(Member(network_of(model, "m"), SPEC) for model in models)


def ignored(_what: str, _done: int, _total: int) -> None: ...


def stopped_in_epoch_2(what: str, _done: int, _total: int) -> None:
    if what.startswith("training, epoch 2 "):
        raise KeyboardInterrupt


def apart(found: torch.nn.ModuleList) -> float:
    projected = torch.from_numpy(projected_of(found, PUPILS.levels))
    return float(distance(projected[:, 0], projected[:, 1]).mean())


def test_the_contrastive_loss_brings_together_what_both_are_right_on(tmp_path: Path) -> None:
    """Classes are what the first says of noise, a few of them, which the second soon says too."""
    course, found = Course(64, 6, 600.0, 1), {weight: members() for weight in (0.0, 3.0)}
    with torch.no_grad():
        said = found[0.0][0].eval()(torch.from_numpy(PUPILS.levels).float() / 255)[0].argmax(1).numpy()
    for weight, trained in found.items():
        train_jointly(trained, Pupils(PUPILS.levels, said), course, weight, tmp_path / f"{weight}.pt", ignored)
    assert apart(found[3.0]) < apart(found[0.0]) - 0.1


def test_a_killed_run_goes_on_to_the_same_models(tmp_path: Path) -> None:
    course, whole, killed, resumed = Course(64, 3, 600.0, 1), members(), members(), members()
    train_jointly(whole, PUPILS, course, 0.3, tmp_path / "whole.pt", ignored)
    with pytest.raises(KeyboardInterrupt):
        train_jointly(killed, PUPILS, course, 0.3, tmp_path / "killed.pt", stopped_in_epoch_2)
    done = train_jointly(resumed, PUPILS, course, 0.3, tmp_path / "killed.pt", ignored)
    assert done.epochs == 3
    for one, other in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)


def test_each_member_sees_a_photograph_as_its_own_input_has_it() -> None:
    member = members()[0].eval()
    smooth = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    small, large = (
        torch.nn.functional.interpolate(smooth, (side, side), mode="bilinear", antialias=True) for side in (64, 128)
    )
    with torch.no_grad():
        torch.testing.assert_close(member(small)[0], member(large)[0], atol=0.5, rtol=0.1)
    assert seen_by_all([SPEC]).std == (1.0, 1.0, 1.0)
