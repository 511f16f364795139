"""How a model's ONNX file becomes a cheaper torch network, learns again, and is a file again: one method's steps.

Each step is kept when it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jetsel.base.errors import CalibrationError, pip_install
from jetsel.train.optimize.activations import Rule, prune
from jetsel.train.optimize.distil import Lesson, Progress, Tell, distil, loss_of, trainer, view
from jetsel.train.optimize.factorise import low_rank, one_d
from jetsel.zoo.classifier import LOGITS
from jetsel.zoo.export import export
from jetsel.zoo.graph import for_size, operations

if TYPE_CHECKING:
    from onnx import ModelProto

FILE_ALONE = "use a method that changes only its file: --method int8"
CYCLE_STEPS = 100  # batches that are trained on before activations are counted again
CYCLE_RATE = 3e-4
CYCLE_BATCH = 128
COUNTED = 512  # photographs on which activations are counted


def network_of(model: ModelProto, name: str) -> nn.Module:
    """Return the model as a torch network, (n, 3, height, width) float32 normalised -> logits (n, classes).

    model: of one size, see `graph.for_size`. Raises CalibrationError if an operator has no counterpart.
    """
    alone = onnx.ModelProto()
    alone.CopyFrom(model)
    for output in [output for output in alone.graph.output if output.name != LOGITS]:
        alone.graph.output.remove(output)
    net = _converted(alone, name)
    for parameter in net.parameters():
        parameter.requires_grad_(True)
    return net


def _converted(model: ModelProto, name: str) -> nn.Module:
    """Return a graph as a torch network that is not trained; raises CalibrationError with what to do instead."""
    try:
        from onnx2torch import convert
    except RuntimeError as error:  # torchvision, which it imports, says so of a torch of another build
        raise CalibrationError(
            f"torchvision does not match this torch ({error}): install matching builds of both, {pip_install('export')}"
        ) from error
    try:
        net: nn.Module = convert(model)
    except (NotImplementedError, KeyError, ValueError) as error:
        raise CalibrationError(f"{name} cannot be converted to a torch model: {error}; {FILE_ALONE}") from error
    return net.eval()


def last_layer(net: nn.Module) -> nn.Linear:
    """Return the layer that makes the logits; raises CalibrationError if that is no dense one."""
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise CalibrationError(
            "its last layer is not a dense layer, so its output channels are unknown: use --method factorise"
        )
    return layers[-1]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network's file, and how it was trained."""

    content: bytes
    words: str


Change = Callable[[nn.Module, float, Lesson, Tell], int]
"""Makes a network cheaper in place, to this share of its operations, and returns how many parts of it changed."""


def pruned(net: nn.Module, share: float, lesson: Lesson, tell: Tell, *, rule: Rule | None = None) -> int:
    """Prune channels by their activations, the plain rule's unless another is named. See Change."""
    example = torch.zeros(2, 3, lesson.spec.height_px, lesson.spec.width_px)
    shown = [view(lesson, rows, torch.Generator().manual_seed(lesson.seed)) for rows in _batches(lesson, COUNTED)]
    net.to(trainer())
    went = prune(net, example, rule or Rule(), _training(lesson, tell), shown, (last_layer(net),), share=share)
    net.cpu()
    return went


def factorised(net: nn.Module, share: float, _lesson: Lesson, _tell: Tell) -> int:
    """Factorise dense layers and 1 x 1 convolutions by their ranks, larger ones into two of one dimension.

    See Change.
    """
    return low_rank(net, share) + one_d(net, share)


CHANGES: Mapping[str, Change] = {"prune": pruned, "factorise": factorised}
"""What `jetsel models optimize` can do to a network."""


def trained(
    parent: ModelProto, name: str, method: str, share: float, change: Change, lesson: Lesson, folder: Path, tell: Tell
) -> TrainedNetwork:
    """Return what a method makes of `parent`, a graph of one size; folder: where the steps that are done are kept.

    Raises CalibrationError if the network does not take to it.
    """
    try:
        return _trained(parent, name, method, share, change, lesson, folder, tell)
    except RuntimeError as error:  # torch's; a channel is not followed through a reshape or a slice of fixed sizes
        fault = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CalibrationError(f"torch cannot make this model: {fault}; use another method, or {FILE_ALONE}") from error


def _trained(
    parent: ModelProto, name: str, method: str, share: float, change: Change, lesson: Lesson, folder: Path, tell: Tell
) -> TrainedNetwork:
    path = folder / f"{method}-{100 * share:.0f}"
    start, checkpoint, target = (path.with_suffix(suffix) for suffix in (".start.onnx", ".pt", ".onnx"))
    if not start.exists():
        write(changed(parent, name, method, share, change, lesson, tell), lesson, start)
    _check_saved(operations(_read(start, lesson)) / operations(parent), method, share)
    net = network_of(_read(start, lesson), name)
    done = distil(net, lesson, checkpoint, tell)
    write(net, lesson, target)
    left = operations(_read(target, lesson)) / operations(parent)
    return TrainedNetwork(target.read_bytes(), _words(method, left, lesson, done))


def _check_saved(left: float, method: str, share: float) -> None:
    """Raise CalibrationError if less than half of what was asked for is saved: no training makes up for that."""
    if left > (1 + share) / 2:
        raise CalibrationError(
            f"{method} leaves {100 * left:.0f} % of the multiply-accumulates, but {100 * share:.0f} % were "
            "requested: most of them are in layers that it does not change; use another method"
        )


def changed(
    parent: ModelProto, name: str, method: str, share: float, change: Change, lesson: Lesson, tell: Tell
) -> nn.Module:
    """Return the network after the change, not fine-tuned yet. Raises CalibrationError if nothing changes."""
    net = network_of(parent, name)
    if not change(net, share, lesson, tell):
        raise CalibrationError(f"{name} has no layer that {method} makes cheaper: use another method")
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


def _words(method: str, left: float, lesson: Lesson, done: Progress) -> str:
    return (
        f"{method}, {100 * left:.0f} % of the multiply-accumulates; {done.epochs} epochs of distillation on "
        f"{len(lesson.levels)} images in {done.seconds / 60:.1f} min, seed {lesson.seed}"
    )
