"""Fine-tune a changed network towards the answers of the one that it comes from; no labels are needed.

Hinton et al. 2015, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as all torch code reads

from jetsel.image import InputSpec
from jetsel.train.loop import Course, Progress, Tell, train, trainer

TEMPERATURE = 2.0  # of both sides
SMALLEST_AREA = 0.4  # of a random crop


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learned from: levels (n, 3, height, width) uint8, how they are normalised, and who answers."""

    levels: NDArray[np.uint8]
    spec: InputSpec
    teacher: nn.Module
    epochs: int
    most_s: float
    seed: int


def distil(net: nn.Module, lesson: Lesson, checkpoint: Path, tell: Tell) -> Progress:
    """Fine-tune `net` in place, from its checkpoint if there is one; return how far it came.

    Fewer epochs are trained if as many would take longer than lesson.most_s: see `train.loop`.
    """
    device = trainer()
    net.to(device, memory_format=torch.channels_last)
    teacher = lesson.teacher.to(device, memory_format=torch.channels_last).eval()
    course = Course(len(lesson.levels), lesson.epochs, lesson.most_s, lesson.seed)

    def loss(rows: Tensor, draw: torch.Generator) -> Tensor:
        return loss_of(net, teacher, view(lesson, rows, draw).to(device))

    done = train(net, loss, course, checkpoint, tell)
    net.to("cpu", memory_format=torch.contiguous_format)
    return done


def loss_of(net: nn.Module, teacher: nn.Module, batch: Tensor) -> Tensor:
    """Return how far the network's answers to a batch are from its teacher's."""
    with torch.autocast(batch.device.type, torch.bfloat16):
        with torch.no_grad():
            taught = teacher(batch).float()
        logits = net(batch).float()
    student = F.log_softmax(logits / TEMPERATURE, 1)
    return F.kl_div(student, F.softmax(taught / TEMPERATURE, 1), reduction="batchmean") * TEMPERATURE**2


def view(lesson: Lesson, rows: Tensor, draw: torch.Generator) -> Tensor:
    """Return random crops of the photographs `rows`, mirrored by chance, as the model takes them."""
    mean, std = (torch.tensor(three).view(1, 3, 1, 1) for three in (lesson.spec.mean, lesson.spec.std))
    return cropped((torch.from_numpy(lesson.levels[rows.numpy()]).float() / 255 - mean) / std, draw)


def cropped(shown: Tensor, draw: torch.Generator) -> Tensor:
    """Return a random crop of each photograph (n, 3, height, width), mirrored by chance, in the same size."""
    n = len(shown)
    area = SMALLEST_AREA + (1 - SMALLEST_AREA) * torch.rand(n, generator=draw)
    ratio = torch.exp((torch.rand(n, generator=draw) * 2 - 1) * math.log(4 / 3))
    width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    x = (torch.rand(n, generator=draw) * 2 - 1) * (1 - width)
    y = (torch.rand(n, generator=draw) * 2 - 1) * (1 - height)
    mirror = (torch.rand(n, generator=draw) < 0.5).float() * -2 + 1
    zero = torch.zeros(n)
    affine = torch.stack([torch.stack([width * mirror, zero, x], 1), torch.stack([zero, height, y], 1)], 1)
    grid = F.affine_grid(affine, [n, *shown.shape[1:]], align_corners=False)
    crop = F.grid_sample(shown, grid, padding_mode="reflection", align_corners=False)
    return crop.contiguous(memory_format=torch.channels_last)
