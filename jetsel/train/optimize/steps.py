"""How a torch network becomes cheaper and learns again: the steps of one recipe, each kept when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jetsel.base.errors import CalibrationError
from jetsel.train.loop import Progress, Tell, trainer
from jetsel.train.optimize.activations import RULES, prune
from jetsel.train.optimize.distil import Lesson, distil, loss_of, view
from jetsel.train.optimize.factorise import low_rank, one_d, separable
from jetsel.train.optimize.graph import for_size, operations
from jetsel.train.optimize.network import FILE_ALONE, last_layer, network_of
from jetsel.train.optimize.recipes import FACTORISING, Recipe
from jetsel.zoo.export import export

if TYPE_CHECKING:
    from onnx import ModelProto

CYCLE_STEPS = 100  # batches that are trained on before activations are counted again
CYCLE_RATE = 3e-4
CYCLE_BATCH = 128
COUNTED = 512  # photographs on which activations are counted


@dataclass(frozen=True, eq=False)
class Trained:
    """A network's file, and how it was trained."""

    content: bytes
    words: str


def trained(parent: ModelProto, name: str, recipe: Recipe, lesson: Lesson, folder: Path, tell: Tell) -> Trained:
    """Return what a recipe makes of `parent`, a graph of one size; folder: where the steps that are done are kept.

    Raises CalibrationError if the network does not take to it.
    """
    try:
        return _trained(parent, name, recipe, lesson, folder, tell)
    except RuntimeError as error:  # torch's; a channel is not followed through a reshape or a slice of fixed sizes
        instead = f"factorise it ({', '.join(FACTORISING)}), or " if recipe.method in RULES else ""
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CalibrationError(f"torch cannot make this candidate: {said}; {instead}{FILE_ALONE}") from error


def _trained(parent: ModelProto, name: str, recipe: Recipe, lesson: Lesson, folder: Path, tell: Tell) -> Trained:
    start, checkpoint = folder / f"{recipe.suffix}.start.onnx", folder / f"{recipe.suffix}.pt"
    if not start.exists():
        write(changed(parent, name, recipe, lesson, tell), lesson, start)
    _check_saved(operations(_read(start, lesson)) / operations(parent), recipe)
    net = network_of(_read(start, lesson), name)
    done = distil(net, lesson, checkpoint, tell)
    target = folder / f"{recipe.suffix}.onnx"
    write(net, lesson, target)
    left = operations(_read(target, lesson)) / operations(parent)
    return Trained(target.read_bytes(), _words(recipe, left, lesson, done))


def _check_saved(left: float, recipe: Recipe) -> None:
    """Raise CalibrationError if less than half of what was asked for is saved: no training makes up for that."""
    asked = recipe.share or 1.0
    if left > (1 + asked) / 2:
        raise CalibrationError(
            f"{recipe.method} leaves {100 * left:.0f} % of the multiply-accumulates, but {100 * asked:.0f} % were "
            "requested: most of them are in layers that it does not change; leave this method out"
        )


def changed(parent: ModelProto, name: str, recipe: Recipe, lesson: Lesson, tell: Tell) -> nn.Module:
    """Return the network after pruning or factorising, not fine-tuned yet."""
    net, share = network_of(parent, name), recipe.share or 1.0
    if recipe.method in RULES:
        example = torch.zeros(2, 3, lesson.spec.height_px, lesson.spec.width_px)
        shown = [view(lesson, rows, torch.Generator().manual_seed(lesson.seed)) for rows in _batches(lesson, COUNTED)]
        net.to(trainer())
        prune(net, example, RULES[recipe.method], _training(lesson, tell), shown, (last_layer(net),), share=share)
        return net.cpu()
    factorise = {"svd": low_rank, "one-d": one_d, "separable": separable}[recipe.method or ""]
    replaced = factorise(net, share)
    if not replaced:
        raise CalibrationError(f"{name} has no layer that {recipe.method} makes cheaper: leave this method out")
    return net


def write(net: nn.Module, lesson: Lesson, path: Path) -> None:
    """Export the network, whole or not at all."""
    part = path.with_suffix(".part")
    export(net, part, lesson.spec.height_px, lesson.spec.width_px)
    part.rename(path)


def _read(path: Path, lesson: Lesson) -> ModelProto:
    return for_size(onnx.load(path), lesson.spec.height_px, lesson.spec.width_px)


def _batches(lesson: Lesson, photographs: int) -> list[Tensor]:
    drawn: NDArray[np.int64] = np.random.default_rng(lesson.seed).permutation(len(lesson.levels))[:photographs]
    return list(torch.from_numpy(drawn).split(CYCLE_BATCH))


def _training(lesson: Lesson, tell: Tell) -> Callable[[nn.Module, Callable[[nn.Module], Tensor]], None]:
    """Return what trains a network between two rounds of pruning: towards its teacher, and away from what costs."""
    rounds = count()

    def train(net: nn.Module, penalty: Callable[[nn.Module], Tensor]) -> None:
        number = next(rounds)
        lesson.teacher.to(trainer())
        draw = torch.Generator().manual_seed(lesson.seed * 1_000 + 500 + number)
        optimiser = torch.optim.AdamW(net.parameters(), lr=CYCLE_RATE)
        net.train()
        for step in range(CYCLE_STEPS):
            tell(f"pruning, round {number + 1}", step, CYCLE_STEPS)
            rows = torch.randint(len(lesson.levels), (CYCLE_BATCH,), generator=draw)
            loss = loss_of(net, lesson.teacher, view(lesson, rows, draw).to(trainer())) + penalty(net)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        net.eval()

    return train


def _words(recipe: Recipe, left: float, lesson: Lesson, done: Progress) -> str:
    return (
        f"{recipe.method}, {100 * left:.0f} % of the multiply-accumulates; {done.epochs} epochs of distillation on "
        f"{len(lesson.levels)} images in {done.seconds / 60:.1f} min, seed {lesson.seed}"
    )
