"""Types shared by the models' store and the engines: the weights to load, and the results of a trial run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HASH_BYTES = 8
"""Bytes of the hash of an image that a head was trained on; enough to identify the image."""


@dataclass(frozen=True)
class HeadFile:
    """Path of a trained head, and the number of classes of the backbone itself."""

    path: Path
    backbone_classes: int


@dataclass(frozen=True)
class Weights:
    """One model's ONNX file with its hash (hexadecimal), input size and number of outputs.

    head: a trained last layer; the ONNX file then holds its backbone.
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
        """These weights without the trained head."""
        return self if self.head is None else replace(self, head=None, classes=self.head.backbone_classes)


@dataclass(frozen=True, eq=False)
class Head:
    """A trained last layer: logits = embedding (n, width) float32 @ weights (width, classes) + bias (classes,)."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> Head:
        """Return the head in a file that `content` made. Raises OSError; ValueError or LookupError for another file."""
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            made = cls(arrays["weights"].astype(np.float32), arrays["bias"].astype(np.float32))
        if made.weights.ndim != 2 or made.bias.shape != made.weights.shape[1:]:
            raise ValueError(f"weights of shape {made.weights.shape} do not match a bias of shape {made.bias.shape}")
        if not (np.isfinite(made.weights).all() and np.isfinite(made.bias).all()):
            raise ValueError("it holds numbers that are not finite")
        return made

    def content(self, learned: Sequence[str] = ()) -> bytes:
        """Return the file's bytes. learned: SHA-256, in hexadecimal, of each training image."""
        starts = np.frombuffer(bytes.fromhex("".join(one[: 2 * HASH_BYTES] for one in learned)), np.uint8)
        file = io.BytesIO()
        np.savez(file, weights=self.weights, bias=self.bias, learned=starts.reshape(-1, HASH_BYTES))
        return file.getvalue()


def learned_images(path: Path) -> set[str]:
    """Return the first digits of the hashes of the images that a head was trained on; empty if unknown."""
    with np.load(path, allow_pickle=False) as arrays:
        return {row.tobytes().hex() for row in arrays["learned"]} if "learned" in arrays else set()


@dataclass(frozen=True)
class TrialRun:
    """Results of a trial run. latency_ms: median over single images."""

    embedding_width: int | None
    latency_ms: float
