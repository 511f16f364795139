"""Fine-tune a changed network towards the answers of the original one, without labels (Hinton et al. 2015, section 2).

A checkpoint is written after each epoch, so that a killed run can resume.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the usual name in torch code

from jetsel.image import InputSpec
from jetsel.train.images import Reporter

TEMPERATURE = 2.0  # of teacher and student
SMALLEST_AREA = 0.4  # of a random crop, as a share of the image
BATCH = 128
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
WARM_UP_SHARE = 0.1
LARGEST_NORM = 1.0  # of a step's gradient: there is no batch normalisation to stabilise it


@dataclass(frozen=True, eq=False)
class DistillationPlan:
    """How to fine-tune a network."""

    levels: NDArray[np.uint8]  # images, (n, 3, height, width) uint8
    spec: InputSpec  # how they are normalised
    teacher: nn.Module  # the original network, whose answers are learned
    epochs: int
    most_s: float  # limit of the training time
    seed: int


@dataclass
class Progress:
    """Progress of training: epochs done, epochs planned (`of`), and the time taken so far."""

    epochs: int = 0
    of: int = 0
    seconds: float = 0.0


def distil(net: nn.Module, plan: DistillationPlan, checkpoint: Path, report: Reporter) -> Progress:
    """Fine-tune `net` in place, from the file `checkpoint` if it exists, and return the progress.

    If all epochs would take longer than plan.most_s, estimated from those done, fewer are trained, but at least one.
    """
    net.to(training_device(), memory_format=torch.channels_last)
    plan.teacher.to(training_device(), memory_format=torch.channels_last).eval()
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.0, weight_decay=WEIGHT_DECAY)
    progress = Progress(of=plan.epochs)
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True, map_location=training_device())
        net.load_state_dict(state["net"])
        optimiser.load_state_dict(state["optimiser"])
        progress = Progress(**state["progress"])
    while progress.epochs < progress.of:
        began = time.monotonic()
        _train_epoch(net, plan, optimiser, progress, report)
        progress.epochs += 1
        progress.seconds += time.monotonic() - began
        progress.of = max(progress.epochs, min(progress.of, int(plan.most_s / (progress.seconds / progress.epochs))))
        state = {"net": net.state_dict(), "optimiser": optimiser.state_dict(), "progress": vars(progress)}
        torch.save(state, checkpoint.with_suffix(".part"))
        checkpoint.with_suffix(".part").rename(checkpoint)
    net.eval()
    net.to("cpu", memory_format=torch.contiguous_format)
    return progress


def training_device() -> torch.device:
    """Return the device to train on: a GPU if torch finds one, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def learning_rate(passed: float) -> float:
    """Return the learning rate: a linear rise, then half a cosine to 0. passed: share of the training done, 0 to 1."""
    if passed < WARM_UP_SHARE:
        return LEARNING_RATE * passed / WARM_UP_SHARE
    return LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * (passed - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)))


def _train_epoch(
    net: nn.Module, plan: DistillationPlan, optimiser: torch.optim.Optimizer, progress: Progress, report: Reporter
) -> None:
    net.train()
    generator = torch.Generator().manual_seed(plan.seed * 1_000 + progress.epochs)
    order = torch.randperm(len(plan.levels), generator=generator)
    steps = math.ceil(len(order) / BATCH)
    for step in range(steps):
        report(f"training, epoch {progress.epochs + 1} of {progress.of}", step, steps)
        batch = random_crops(plan, order[step * BATCH : (step + 1) * BATCH], generator).to(training_device())
        loss = distillation_loss(net, plan.teacher, batch)
        for group in optimiser.param_groups:
            group["lr"] = learning_rate((progress.epochs + step / steps) / progress.of)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), LARGEST_NORM)
        optimiser.step()


def distillation_loss(net: nn.Module, teacher: nn.Module, batch: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of a network's answers to a batch from its teacher's, at TEMPERATURE."""
    with torch.autocast(batch.device.type, torch.bfloat16):
        with torch.no_grad():
            teacher_logits = teacher(batch).float()
        logits = net(batch).float()
    student = F.log_softmax(logits / TEMPERATURE, 1)
    return F.kl_div(student, F.softmax(teacher_logits / TEMPERATURE, 1), reduction="batchmean") * TEMPERATURE**2


def random_crops(plan: DistillationPlan, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Return a random crop of each image in `rows` at its full size, normalised, (n, 3, height, width).

    A crop has 40 to 100 % of the area and a side ratio from 3:4 to 4:3, and half of the crops are mirrored.
    """
    mean, std = (torch.tensor(channel_values).view(1, 3, 1, 1) for channel_values in (plan.spec.mean, plan.spec.std))
    images, n = (torch.from_numpy(plan.levels[rows.numpy()]).float() / 255 - mean) / std, len(rows)
    area = SMALLEST_AREA + (1 - SMALLEST_AREA) * torch.rand(n, generator=generator)
    ratio = torch.exp((torch.rand(n, generator=generator) * 2 - 1) * math.log(4 / 3))
    width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    x = (torch.rand(n, generator=generator) * 2 - 1) * (1 - width)
    y = (torch.rand(n, generator=generator) * 2 - 1) * (1 - height)
    mirror = (torch.rand(n, generator=generator) < 0.5).float() * -2 + 1
    zero = torch.zeros(n)
    affine = torch.stack([torch.stack([width * mirror, zero, x], 1), torch.stack([zero, height, y], 1)], 1)
    grid = F.affine_grid(affine, [n, *images.shape[1:]], align_corners=False)
    crop = F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    return crop.contiguous(memory_format=torch.channels_last)
