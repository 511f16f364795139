"""What the candidates of one parent are made from: images and its graph, read once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.image import InputSpec
from jetsel.train.images import SEED, Reporter, normalised, read_pixels
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.zoo import Family, Model
from jetsel.zoo.onnx_model import read_model

if TYPE_CHECKING:
    from onnx import ModelProto

    from jetsel.train.optimize.distil import DistillationPlan


def drawn(paths: Sequence[Path], share: float) -> tuple[list[Path], list[Path]]:
    """Part photographs by a hash of their names: about `share` of them, and the rest; the same each time."""
    some: list[Path] = []
    rest: list[Path] = []
    for path in paths:
        digest = hashlib.sha256(f"{SEED} {path.parent.name}/{path.name}".encode()).digest()
        (some if digest[0] < 256 * share else rest).append(path)
    return some, rest


@dataclass(frozen=True)
class OptimizePlan:
    """What is asked for.

    learn_from: photographs, whose labels nobody asks for. folder: where everything is kept. threads: of one inference.
    symmetric: 8-bit numbers as TensorRT demands them. epochs: of fine-tuning, and most_s for it, for each candidate.
    """

    parent: Model
    family: Family
    learn_from: Sequence[Path]
    limits: image.Limits
    folder: Path
    threads: int = 1
    symmetric: bool = False
    epochs: int = 16
    most_s: float = 1200.0
    seed: int = 2018


@dataclass(eq=False)
class Material:
    """Read once, kept for all recipes."""

    plan: OptimizePlan
    tell: Reporter
    _shown: dict[tuple[int, int, int], NDArray[np.uint8]] = field(default_factory=dict)

    @cached_property
    def parent(self) -> ModelProto:
        """The parent's graph as its file has it."""
        return read_model(self.plan.parent.path)

    def graph(self, spec: InputSpec) -> ModelProto:
        """The parent's graph for photographs of this size; raises ManifestError if it does not work."""
        return with_fixed_size(self.parent, spec.height_px, spec.width_px)

    def levels(self, spec: InputSpec, most: int | None = None) -> NDArray[np.uint8]:
        """The photographs to learn from, (n, 3, height, width), or the first of them; raises CalibrationError."""
        paths = self.plan.learn_from[:most]
        key = (spec.width_px, spec.height_px, len(paths))
        if key not in self._shown:
            self._shown[key], _ = read_pixels(paths, spec, self.plan.limits, self.plan.family.decode_px, self.tell)
        return self._shown[key]

    def shown(self, spec: InputSpec, most: int) -> NDArray[np.float32]:
        """The first of them as a model of this input takes them, (n, 3, height, width) float32."""
        return normalised(self.levels(spec, most), spec)

    @cached_property
    def lesson(self) -> DistillationPlan:
        """What networks are fine-tuned on, at the parent's own size."""
        from jetsel.train.optimize.distil import DistillationPlan
        from jetsel.train.optimize.steps import to_torch

        plan, spec = self.plan, self.plan.parent.manifest.input
        teacher = to_torch(self.graph(spec), plan.parent.manifest.name)
        return DistillationPlan(self.levels(spec), spec, teacher, plan.epochs, plan.most_s, plan.seed)
