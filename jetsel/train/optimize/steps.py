"""Convert an ONNX model to torch, make it cheaper, fine-tune it, and export it; finished steps are kept on disk."""

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
from jetsel.train.images import Reporter
from jetsel.train.optimize.activations import PrunableNetwork, count_operations, prune
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.train.optimize.distil import DistillationPlan, distil, distillation_loss, random_crops, training_device
from jetsel.train.optimize.factorise import low_rank, one_d
from jetsel.zoo.classifier import LOGITS
from jetsel.zoo.export import export

if TYPE_CHECKING:
    from onnx import ModelProto

FILE_ALONE = "use a method that changes only its file: --method int8"
CYCLE_STEPS = 100  # training batches between two counts of activations
CYCLE_RATE = 3e-4
CYCLE_BATCH = 128
COUNTED = 512  # images on which activations are counted


def to_torch(model: ModelProto, name: str) -> nn.Module:
    """Return the model as a torch network: normalised images (n, 3, height, width) float32 -> logits (n, classes).

    model: from `compress.with_fixed_size`. Raises CalibrationError if it cannot be converted.
    """
    try:
        from onnx2torch import convert
    except RuntimeError as error:  # from torchvision, if torch is another build
        raise CalibrationError(
            f"torchvision does not match this torch ({error}): install matching builds of both, {pip_install('export')}"
        ) from error
    logits_only = onnx.ModelProto()
    logits_only.CopyFrom(model)
    for output in [output for output in logits_only.graph.output if output.name != LOGITS]:
        logits_only.graph.output.remove(output)
    try:
        net: nn.Module = convert(logits_only)
    except (NotImplementedError, KeyError, ValueError) as error:
        raise CalibrationError(f"{name} cannot be converted to a torch model: {error}; {FILE_ALONE}") from error
    return net.requires_grad_(True).eval()


def last_layer(net: nn.Module) -> nn.Linear:
    """Return the last dense layer, which makes the logits; raises CalibrationError if there is none."""
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise CalibrationError(
            "its last layer is not a dense layer, so its output channels are unknown: use --method factorise"
        )
    return layers[-1]


Change = Callable[[nn.Module, float, DistillationPlan, Reporter], int]
"""Makes a network cheaper in place, down to a share of its operations, and returns the number of changed layers or
channels. Arguments: network, share, plan for its training, receiver of progress."""


def prune_channels(net: nn.Module, share: float, plan: DistillationPlan, report: Reporter) -> int:
    """Prune seldom active channels until `share` of the operations is left; return their number. See Change."""
    removed = prune(make_prunable(net, plan), pruning_trainer(plan, report), share)
    net.cpu()
    return removed


def make_prunable(net: nn.Module, plan: DistillationPlan) -> PrunableNetwork:
    """Move a network to the device to train on, and return it with images on which its activations are counted."""
    example = torch.zeros(2, 3, plan.spec.height_px, plan.spec.width_px)
    drawn: NDArray[np.int64] = np.random.default_rng(plan.seed).permutation(len(plan.levels))[:COUNTED]
    batches = torch.from_numpy(drawn).split(CYCLE_BATCH)
    shown = [random_crops(plan, rows, torch.Generator().manual_seed(plan.seed)) for rows in batches]
    return PrunableNetwork(net.to(training_device()), example, shown, (last_layer(net),))


def factorise_layers(net: nn.Module, share: float, _plan: DistillationPlan, _report: Reporter) -> int:
    """Split layers into two cheaper ones, down to `share` of their operations; return their number. See Change."""
    return low_rank(net, share) + one_d(net, share)


CHANGES: Mapping[str, Change] = {"prune": prune_channels, "factorise": factorise_layers}
"""Method of `jetsel models optimize` -> its change."""


@dataclass(frozen=True)
class Reduction:
    """How to make a network cheaper."""

    method: str  # its name, a key of CHANGES
    share: float  # of the multiply-accumulates that is to stay
    change: Change


def train_reduced(
    parent: ModelProto, name: str, reduction: Reduction, plan: DistillationPlan, folder: Path, report: Reporter
) -> tuple[bytes, str]:
    """Make `parent`, from `compress.with_fixed_size`, cheaper, and fine-tune it.

    Return the new ONNX file's bytes, and how it was made, in words. folder: keeps finished steps, from which a later
    call resumes. Raises CalibrationError if the method does not work for this network.
    """
    method = reduction.method
    path = folder / f"{method}-{100 * reduction.share:.0f}"
    start, checkpoint, target = (path.with_suffix(suffix) for suffix in (".start.onnx", ".pt", ".onnx"))
    try:
        if not start.exists():
            net = to_torch(parent, name)
            if not reduction.change(net, reduction.share, plan, report):
                raise CalibrationError(f"{name} has no layer that {method} makes cheaper: use another method")
            export_atomically(net, plan, start)
        spec = plan.spec
        net = to_torch(with_fixed_size(onnx.load(start), spec.height_px, spec.width_px), name)
        example = torch.zeros(1, 3, spec.height_px, spec.width_px)
        ratio = count_operations(net, example) / count_operations(plan.teacher, example)
        if ratio > (1 + reduction.share) / 2:  # before time goes to training
            raise CalibrationError(
                f"{method} leaves {100 * ratio:.0f} % of the multiply-accumulates, but {100 * reduction.share:.0f} % "
                "were requested: most of them are in layers that it does not change; use another method"
            )
        progress = distil(net, plan, checkpoint, report)
        export_atomically(net, plan, target)
    except RuntimeError as error:  # from torch: pruning breaks reshapes and slices of fixed sizes
        fault = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CalibrationError(f"torch cannot make this model: {fault}; use another method, or {FILE_ALONE}") from error
    return target.read_bytes(), (
        f"{method}, {100 * ratio:.0f} % of the multiply-accumulates; {progress.epochs} epochs of distillation on "
        f"{len(plan.levels)} images in {progress.seconds / 60:.1f} min, seed {plan.seed}"
    )


def export_atomically(net: nn.Module, plan: DistillationPlan, path: Path) -> None:
    """Export the network to `path` as ONNX; the file appears when it is complete."""
    part = path.with_suffix(".part")
    export(net, part, plan.spec.height_px, plan.spec.width_px)
    part.rename(path)


def pruning_trainer(plan: DistillationPlan, report: Reporter) -> Callable[..., None]:
    """Return a function that fine-tunes a network between two rounds of pruning, in CYCLE_STEPS batches.

    Its second argument returns a penalty, added to the loss.
    """
    rounds = count()

    def train(net: nn.Module, penalty: Callable[[nn.Module], Tensor | float] = lambda _: 0.0) -> None:
        number = next(rounds)
        plan.teacher.to(training_device())
        draw = torch.Generator().manual_seed(plan.seed * 1_000 + 500 + number)
        optimiser = torch.optim.AdamW(net.parameters(), lr=CYCLE_RATE)
        net.train()
        for step in range(CYCLE_STEPS):
            report(f"pruning, round {number + 1}", step, CYCLE_STEPS)
            rows = torch.randint(len(plan.levels), (CYCLE_BATCH,), generator=draw)
            loss = distillation_loss(net, plan.teacher, random_crops(plan, rows, draw).to(training_device())) + penalty(
                net
            )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        net.eval()

    return train
