"""Types shared by zoo and engines: the weights to load, trained last layers (heads), and results of trial runs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HASH_BYTES = 8  # stored bytes of each training image's SHA-256; enough to identify the image


@dataclass(frozen=True)
class HeadFile:
    """Path of a head's file; backbone_classes: outputs of the model that the head is put on (the backbone)."""

    path: Path
    backbone_classes: int


@dataclass(frozen=True)
class Weights:
    """What an engine loads: a model's ONNX file, its SHA-256 in hexadecimal, input size, and number of outputs.

    head: a trained last layer on the embedding of the ONNX file (the backbone); None if the file answers itself.
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
        """The same ONNX file without the head, so with its own classes."""
        return self if self.head is None else replace(self, head=None, classes=self.head.backbone_classes)


@dataclass(frozen=True, eq=False)
class Head:
    """A trained last layer: logits (n, classes) = embedding (n, width) @ weights (width, classes) + bias (classes,)."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> Head:
        """Return the head in a .npz file. Raises OSError if it is unreadable, ValueError or LookupError if invalid."""
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            head = cls(arrays["weights"].astype(np.float32), arrays["bias"].astype(np.float32))
        if head.weights.ndim != 2 or head.bias.shape != head.weights.shape[1:]:
            raise ValueError(f"weights of shape {head.weights.shape} do not match a bias of shape {head.bias.shape}")
        if not (np.isfinite(head.weights).all() and np.isfinite(head.bias).all()):
            raise ValueError("it holds numbers that are not finite")
        return head

    def content(self, image_hashes: Sequence[str] = ()) -> bytes:
        """Return the content of a file that `read` accepts. image_hashes: SHA-256, hexadecimal, of training images."""
        digits = "".join(image_hash[: 2 * HASH_BYTES] for image_hash in image_hashes)
        hash_bytes = np.frombuffer(bytes.fromhex(digits), np.uint8)
        file = io.BytesIO()
        np.savez(file, weights=self.weights, bias=self.bias, learned=hash_bytes.reshape(-1, HASH_BYTES))
        return file.getvalue()


def learned_images(path: Path) -> set[str]:
    """Return the first 2 * HASH_BYTES digits of the SHA-256 of each training image of a head; empty if unknown."""
    with np.load(path, allow_pickle=False) as arrays:
        return {row.tobytes().hex() for row in arrays["learned"]} if "learned" in arrays else set()


@dataclass(frozen=True)
class TrialRun:
    """Results of running a new model. embedding_width: None if it has no embedding. latency_ms: median of one image."""

    embedding_width: int | None
    latency_ms: float
