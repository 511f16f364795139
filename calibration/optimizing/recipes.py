"""Which candidates are made of a model: each by a recipe, which its manifest keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from jetsel.image import InputSpec

FILE_METHODS = ("int8", "fp16", "smaller", "clustered")
"""Those that change the file or its input alone, in seconds."""
SHARES = (0.7, 0.5)
"""Of the parent's multiply-accumulates that pruning and factorising leave, if no target is named."""
SIDES = (0.86, 0.71, 0.57, 0.43)
"""Of the parent's side in pixels."""
ROUND_ABOVE_PX = 128
"""From here sides are multiples of 32, below of 8."""
SMALLEST_SIDE_PX = 24


@dataclass(frozen=True)
class Recipe:
    """How one candidate is made. method: None if only its numbers change; share: of the operations that stay.

    side_px: of the input's shorter side, None for the parent's. numbers: how weights are kept.
    """

    method: str | None = None
    share: float | None = None
    side_px: int | None = None
    numbers: str = "float32"

    @property
    def suffix(self) -> str:
        """What the parent's name gets."""
        parts = [
            self.method or "",
            f"{100 * self.share:.0f}" if self.share is not None else "",
            f"{self.side_px}px" if self.side_px is not None else "",
            self.numbers if self.numbers != "float32" else "",
        ]
        return "-".join(part for part in parts if part)


def recipes(methods: Sequence[str], spec: InputSpec, share: float | None = None) -> list[Recipe]:
    """Return a recipe for each candidate, those that others are made of first.

    share: the one to prune and factorise to, None for each of SHARES. If int8 is among the methods, the candidates
    that compute less are made with 8 bits too.
    """
    made = [Recipe(side_px=side) for side in sides(spec)] if "smaller" in methods else []
    shares = SHARES if share is None else (share,)
    made += [Recipe(method, one) for method in methods if method not in FILE_METHODS for one in shares]
    eight = [replace(recipe, numbers="int8") for recipe in [Recipe(), *made]] if "int8" in methods else []
    stored = [Recipe(numbers=numbers) for numbers in ("fp16", "clustered") if numbers in methods]
    return [*made, *eight, *stored]


def sides(spec: InputSpec) -> list[int]:
    """Return the smaller sides that are tried, largest first."""
    side = min(spec.width_px, spec.height_px)
    step = 32 if side >= ROUND_ABOVE_PX else 8
    found = dict.fromkeys(round(side * share / step) * step for share in SIDES)
    return [one for one in found if SMALLEST_SIDE_PX <= one < side]


def input_of(recipe: Recipe, spec: InputSpec) -> InputSpec:
    """Return what the candidate takes: the parent's input, scaled."""
    if recipe.side_px is None:
        return spec
    scale = recipe.side_px / min(spec.width_px, spec.height_px)
    sizes = {name: round(getattr(spec, name) * scale) for name in ("width_px", "height_px")}
    resize_px = None if spec.resize_px is None else max(round(spec.resize_px * scale), *sizes.values())
    return msgspec.structs.replace(spec, **sizes, resize_px=resize_px)
