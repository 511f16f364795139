"""Step 1 of Algorithm 1: the models trained together, so that their embeddings tell who is right.

Eshratifar and Pedram (2020), section II-A. The paper trains from nothing for 200 epochs; here published or shipped
models are trained on, for as long as one can wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as all torch code reads

from jetsel.image import InputSpec
from jetsel.train.loop import Course, Progress, Tell, train, trainer
from jetsel.train.multiplexer.losses import contrastive
from jetsel.train.multiplexer.weigher import META
from jetsel.train.optimize.distil import cropped
from jetsel.train.optimize.network import last_layer

CONTRAST = 0.3
"""What the contrastive loss weighs beside the models' cross-entropies; the paper sums over pairs, without a weight."""
RATE = 3e-4


@dataclass(frozen=True, eq=False)
class Pupils:
    """What the models learn from: levels (n, 3, height, width) uint8 of one input, see `seen_by_all`; classes (n,)."""

    levels: NDArray[np.uint8]
    classes: NDArray[np.int64]


class Member(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """One of the models, its input, and h of equation (1), which puts its embedding into the common space."""

    def __init__(self, net: nn.Module, spec: InputSpec) -> None:
        super().__init__()
        self.net = net
        last = last_layer(net)
        self.project = nn.Linear(last.in_features, META, bias=False)
        self._size, self._is_bgr = (spec.height_px, spec.width_px), spec.channels == "bgr"
        self.register_buffer("mean", torch.tensor(spec.mean).view(1, 3, 1, 1))
        self.register_buffer("deviation", torch.tensor(spec.std).view(1, 3, 1, 1))
        self._seen: Tensor | None = None
        last.register_forward_pre_hook(self._keep)

    def _keep(self, _layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._seen = inputs[0]

    def forward(self, shown: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 3, height, width) from 0 to 1 -> logits (n, classes), projected embedding (n, META) of length 1."""
        if shown.shape[2:] != self._size:
            shown = F.interpolate(shown, self._size, mode="bilinear", antialias=True)
        if self._is_bgr:
            shown = shown.flip(1)
        logits = self.net((shown - self.mean) / self.deviation)
        assert self._seen is not None
        return logits.float(), F.normalize(self.project(self._seen).float(), dim=1)


def seen_by_all(specs: Sequence[InputSpec]) -> InputSpec:
    """Return the input that photographs are kept at for all of these: the largest, RGB, levels as they are."""
    largest = max(specs, key=lambda spec: spec.width_px * spec.height_px)
    return msgspec.structs.replace(largest, channels="rgb", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


def train_jointly(
    members: nn.ModuleList, pupils: Pupils, course: Course, contrast: float, checkpoint: Path, tell: Tell
) -> Progress:
    """Train the models in place by their cross-entropies and `contrast` times equation (2); return how far it came."""
    device = trainer()
    members.to(device, memory_format=torch.channels_last)
    classes = torch.from_numpy(pupils.classes)

    def loss(rows: Tensor, draw: torch.Generator) -> Tensor:
        shown = cropped(torch.from_numpy(pupils.levels[rows.numpy()]).float() / 255, draw).to(device)
        true = classes[rows].to(device)
        with torch.autocast(device.type, torch.bfloat16):
            told = [member(shown) for member in members]
        alone = torch.stack([F.cross_entropy(logits, true) for logits, _ in told]).sum()
        right = torch.stack([logits.argmax(1) == true for logits, _ in told], 1)
        projected = torch.stack([embedding for _, embedding in told], 1)
        return alone + contrast * contrastive(projected, right)

    done = train(members, loss, course, checkpoint, tell)
    members.to("cpu", memory_format=torch.contiguous_format)
    return done


def projected_of(members: nn.ModuleList, levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the projected embeddings of whole photographs, (n, N, META) float32; levels as in Pupils."""
    members.eval()
    parts = []
    for start in range(0, len(levels), 256):
        shown = torch.from_numpy(levels[start : start + 256]).float() / 255
        with torch.no_grad():
            parts.append(torch.stack([member(shown)[1] for member in members], 1))
    found: NDArray[np.float32] = torch.cat(parts).numpy()
    return found
