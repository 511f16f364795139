"""Make a multiplexer: try cuts of a model's first layers, choose the one of least loss, and export it.

What each says of a photograph that it learned from is said by one that did not: see `Made.held_out`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as all torch code reads

from jetsel.errors import CalibrationError
from jetsel.image import InputSpec
from jetsel.train.loop import Tell, trainer
from jetsel.train.multiplexer.stems import Cut, cuts, stem_of
from jetsel.train.multiplexer.weigher import (
    PENALTIES,
    Examples,
    Loss,
    Weigher,
    cross_fitted,
    fit,
    losses,
    temperature_of,
)
from jetsel.train.optimize.photographs import normalised
from jetsel.zoo.export import export

if TYPE_CHECKING:
    from onnx import ModelProto

BATCH = 64


@dataclass(frozen=True, eq=False)
class Tried:
    """A cut with one penalty. said: (n, N) of photographs held out, at the temperature; each: their losses, (n,)."""

    cut: Cut
    penalty: float
    temperature: float
    said: NDArray[np.float32]
    each: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Made:
    """A multiplexer. content: its ONNX file. held_out: (n, N + 1), what one that had not seen a photograph says of it.

    tried: the best penalty of each cut, the earliest cut first; cut: the one that was taken.
    """

    content: bytes
    held_out: NDArray[np.float32]
    cut: Cut
    tried: list[Tried]


class Multiplexer(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """(n, 3, height, width) normalised -> (n, N + 1): what each model weighs, and a last that is 0.

    Beside the last the driver's softmax keeps what each number is, and not their differences alone.
    """

    def __init__(self, stem: nn.Module, weigher: Weigher) -> None:
        super().__init__()
        self.stem, self.weigher = stem, weigher

    def forward(self, batch: Tensor) -> Tensor:
        """See the class."""
        return padded(self.weigher(self.stem(batch).mean((2, 3))))


def padded(weights: Tensor) -> Tensor:
    """Return the weights (n, N) with a last column that is 0."""
    return F.pad(weights, (0, 1))


def make(
    model: ModelProto,
    cheapest: int,
    spec: InputSpec,
    levels: NDArray[np.uint8],
    examples_of: Callable[[NDArray[np.float32]], Examples],
    loss: Loss,
    fold_of: NDArray[np.int64],
    seed: int,
    tell: Tell,
) -> Made:
    """Make one of the first layers of `model`, a graph of one size.

    cheapest: multiply-accumulates of the cheapest model, which it may have at most. levels: (n, 3, height, width) of
    the photographs, as its input has them. examples_of: puts what a stem saw, (n, C), beside what the models said.
    fold_of: (n,). Raises CalibrationError.
    """
    places = cuts(model, cheapest)
    tried, pooled_of = [], {}
    for number, cut in enumerate(places):
        tell("trying where to cut", number, len(places))
        pooled_of[cut] = pooled(stem_of(model, cut), spec, levels)
        examples = examples_of(pooled_of[cut])
        found = []
        for penalty in PENALTIES:
            said = cross_fitted(examples, loss, penalty, fold_of, seed)
            temperature = temperature_of(said, examples, loss)
            said = said / np.float32(temperature)
            found.append(Tried(cut, penalty, temperature, said, losses(said, examples, loss)))
        tried.append(min(found, key=lambda one: one.each.mean()))
    tell("trying where to cut", len(places), len(places))
    chosen = min(tried, key=lambda one: one.each.mean())
    weigher = fit(examples_of(pooled_of[chosen.cut]), loss, chosen.penalty, seed)
    weigher.temperature.fill_(chosen.temperature)
    content = _exported(Multiplexer(stem_of(model, chosen.cut), weigher), spec)
    held_out = np.pad(chosen.said, ((0, 0), (0, 1)))
    return Made(content, held_out, chosen.cut, tried)


def pooled(stem: nn.Module, spec: InputSpec, levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what the stem sees of each photograph, the mean over places: (n, C) float32."""
    device = trainer()
    stem.to(device).eval()
    parts = []
    for start in range(0, len(levels), BATCH):
        batch = torch.from_numpy(normalised(levels[start : start + BATCH], spec)).to(device)
        with torch.no_grad():
            parts.append(stem(batch).float().mean((2, 3)).cpu())
    found: NDArray[np.float32] = torch.cat(parts).numpy()
    if not np.isfinite(found).all():
        raise CalibrationError("its first layers answer numbers that are not finite: name another model with --stem")
    return found


def _exported(net: nn.Module, spec: InputSpec) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "multiplexer.onnx"
        export(net, path, spec.height_px, spec.width_px)
        return path.read_bytes()
