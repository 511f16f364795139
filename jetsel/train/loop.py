"""One way to train a network: epochs over photographs, with a checkpoint after each, so that a killed run goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

BATCH = 128
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
WARM_UP_SHARE = 0.1
LARGEST_NORM = 1.0  # of a step's gradient: no batch normalisation steadies it

Tell = Callable[[str, int, int], None]
Loss = Callable[[Tensor, torch.Generator], Tensor]
"""Numbers of photographs (b,) and what draws their views -> the loss of a step."""


@dataclass(frozen=True)
class Course:
    """How long and by what draw. photographs: how many there are; most_s: seconds in all."""

    photographs: int
    epochs: int
    most_s: float
    seed: int
    learning_rate: float = LEARNING_RATE


@dataclass
class Progress:
    """How far training came: epochs done, of how many, and the seconds that they took."""

    epochs: int = 0
    of: int = 0
    seconds: float = 0.0


def train(net: nn.Module, loss: Loss, course: Course, checkpoint: Path, tell: Tell) -> Progress:
    """Train `net` in place, where its parameters are, from its checkpoint if there is one; return how far it came.

    Fewer epochs are trained if as many would take longer than course.most_s, by the time of those that are done; one
    at least.
    """
    device = next(net.parameters()).device
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.0, weight_decay=WEIGHT_DECAY)
    done = Progress(of=course.epochs)
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True, map_location=device)
        net.load_state_dict(state["net"])
        optimiser.load_state_dict(state["optimiser"])
        done = Progress(**state["progress"])
    while done.epochs < done.of:
        began = time.monotonic()
        _epoch(net, loss, optimiser, course, done, tell)
        done.epochs += 1
        done.seconds += time.monotonic() - began
        done.of = max(done.epochs, min(done.of, int(course.most_s / (done.seconds / done.epochs))))
        state = {"net": net.state_dict(), "optimiser": optimiser.state_dict(), "progress": vars(done)}
        torch.save(state, checkpoint.with_suffix(".part"))
        checkpoint.with_suffix(".part").rename(checkpoint)
    net.eval()
    return done


def trainer() -> torch.device:
    """Return what networks are trained on: a GPU if torch finds one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def rate(passed: float, highest: float = LEARNING_RATE) -> float:
    """Return the learning rate after a share of the training: a linear rise, then a half cosine down to zero."""
    if passed < WARM_UP_SHARE:
        return highest * passed / WARM_UP_SHARE
    return highest * 0.5 * (1 + math.cos(math.pi * (passed - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)))


def _epoch(
    net: nn.Module, loss: Loss, optimiser: torch.optim.Optimizer, course: Course, done: Progress, tell: Tell
) -> None:
    net.train()
    draw = torch.Generator().manual_seed(course.seed * 1_000 + done.epochs)
    order = torch.randperm(course.photographs, generator=draw)
    steps = math.ceil(len(order) / BATCH)
    for step in range(steps):
        tell(f"training, epoch {done.epochs + 1} of {done.of}", step, steps)
        missed = loss(order[step * BATCH : (step + 1) * BATCH], draw)
        for group in optimiser.param_groups:
            group["lr"] = rate((done.epochs + step / steps) / done.of, course.learning_rate)
        optimiser.zero_grad(set_to_none=True)
        missed.backward()
        nn.utils.clip_grad_norm_(net.parameters(), LARGEST_NORM)
        optimiser.step()
