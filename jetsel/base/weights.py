"""What the models' store and the engines tell each other: which weights to load, and what a run of them showed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HASH_BYTES = 8
"""Of the hash of an image that a head was trained on: enough to tell it from any other."""


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
        """What the ONNX file alone is: the same if the model has no head of its own."""
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
            raise ValueError(f"weights of shape {made.weights.shape} do not match a bias of shape {made.bias.shape}")
        if not (np.isfinite(made.weights).all() and np.isfinite(made.bias).all()):
            raise ValueError("it holds numbers that are not finite")
        return made

    def content(self, learned: Sequence[str] = ()) -> bytes:
        """Return the file's bytes. learned: SHA-256, in hexadecimal, of the images that it was trained on."""
        starts = np.frombuffer(bytes.fromhex("".join(one[: 2 * HASH_BYTES] for one in learned)), np.uint8)
        file = io.BytesIO()
        np.savez(file, weights=self.weights, bias=self.bias, learned=starts.reshape(-1, HASH_BYTES))
        return file.getvalue()


def learned_images(path: Path) -> set[str]:
    """Return the first digits of the hashes of the images that a head was trained on; none if its file has none."""
    with np.load(path, allow_pickle=False) as arrays:
        return {row.tobytes().hex() for row in arrays["learned"]} if "learned" in arrays else set()


@dataclass(frozen=True)
class TrialRun:
    """What a model was seen to do. latency_ms: the median of a photograph's runs, one at a time."""

    embedding_width: int | None
    latency_ms: float
