"""What the models' store and the engines tell each other: which weights to load, and what a run of them showed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """The ONNX file of one model, its hash in hexadecimal, what it takes and how many numbers it answers."""

    name: str
    path: Path
    sha256: str
    height_px: int
    width_px: int
    classes: int


@dataclass(frozen=True)
class Tried:
    """What a model was seen to do. latency_ms: the median of a photograph's runs, one at a time."""

    embedding_width: int | None
    latency_ms: float
