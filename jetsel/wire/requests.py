"""What a client may ask."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.errors import BadRequestError

Criterion = Literal["top1", "top5"]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class Pixels(Struct, frozen=True, forbid_unknown_fields=True):
    """How raw pixels lie in frame two, as cameras have them; `stride` is the bytes from one row to the next."""

    format: Literal["bgr8", "rgb8", "gray8", "nv12"]
    width: int
    height: int
    stride: int


class Classify(Struct, tag="classify", tag_field="type", frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Asks what the photograph in frame two shows. What is left out is decided by the daemon's configuration.

    Defaults are left out on the wire: an older daemon refuses fields that it does not know.
    """

    v: int
    id: Id
    family: Name | None = None
    top_k: Annotated[int, Meta(ge=1, le=1000)] = 5
    policy: Name | None = None
    model: Name | None = None
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    criterion: Criterion = "top1"
    on_doubt: Literal["use", "refuse"] | None = None
    explain: bool = False
    pixels: Pixels | None = None
    on_device: bool = False
    least_accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None
    most_energy_mj: Annotated[float, Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        """Reject what JSON has no number for: it would be sent as null, which is no limit."""
        for name in ("deadline_ms", "least_accuracy", "most_energy_mj"):
            if (value := getattr(self, name)) is not None and not math.isfinite(value):
                raise BadRequestError(f'"{name}" is {value}: give a number, or leave it out')


class Status(Struct, tag="status", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks what the daemon serves, and its state."""

    v: int
    id: Id


class Reload(Struct, tag="reload", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks the daemon to read its configuration, models and calibrations again; for administrators."""

    v: int
    id: Id


Request = Classify | Status | Reload
