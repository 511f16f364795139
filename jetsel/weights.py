"""What the models' store and the engines tell each other: which weights to load, and what a run of them showed."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class HeadFile:
    """Where a head is kept, and how many classes the backbone itself has."""

    path: Path
    backbone_classes: int


@dataclass(frozen=True)
class Weights:
    """The ONNX file of one model, its hash in hexadecimal, what it takes and how many numbers it answers.

    head: a last layer of its own; the ONNX file is that of its backbone then.
    """

    name: str
    path: Path
    sha256: str
    height_px: int
    width_px: int
    classes: int
    head: HeadFile | None = None

    @property
    def backbone(self) -> Weights:
        """What the ONNX file alone is: the same where the model has no head of its own."""
        return self if self.head is None else replace(self, head=None, classes=self.head.backbone_classes)


@dataclass(frozen=True, eq=False)
class Head:
    """A last layer: embedding (n, width) float32 @ weights (width, classes) + bias (classes,) are its logits."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> Head:
        """Read the file that `content` made; raises OSError, and ValueError or LookupError for any other."""
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            made = cls(arrays["weights"].astype(np.float32), arrays["bias"].astype(np.float32))
        if made.weights.ndim != 2 or made.bias.shape != made.weights.shape[1:]:
            raise ValueError(f"weights {made.weights.shape} and bias {made.bias.shape} do not fit")
        if not (np.isfinite(made.weights).all() and np.isfinite(made.bias).all()):
            raise ValueError("it holds numbers that are not finite")
        return made

    def content(self) -> bytes:
        """Return the file's bytes."""
        file = io.BytesIO()
        np.savez(file, weights=self.weights, bias=self.bias)
        return file.getvalue()


@dataclass(frozen=True)
class Tried:
    """What a model was seen to do. latency_ms: the median of a photograph's runs, one at a time."""

    embedding_width: int | None
    latency_ms: float
