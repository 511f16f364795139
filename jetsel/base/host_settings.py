"""The section [host] of jetsel.toml: settings of the process that runs TensorRT."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.base.state import state_folder

Precision = Literal["fp32", "fp16", "int8"]


class HostSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The process that runs TensorRT, and its engines: models compiled for this device.

    interpreter: Python that has TensorRT (default: JetPack's).
    reserve_mb: Megabytes of memory that every load of an engine leaves free.
    engines: Folder of the engines (default: in jetsel's state folder).
    precision: Precision of the engines that are built and loaded.
    workspace_mb: Megabytes of memory that a build may use to try TensorRT's tactics.
    max_batch: Largest number of images in one run of an engine.
    """

    interpreter: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    reserve_mb: Annotated[float, Meta(ge=0, le=1_048_576)] = 256.0
    engines: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    precision: Precision = "fp16"
    workspace_mb: Annotated[float, Meta(gt=0, le=1_048_576)] = 512.0
    max_batch: Annotated[int, Meta(ge=1, le=256)] = 8

    @property
    def folder(self) -> Path:
        """Folder of the engines (models compiled for this GPU): `engines`, or the default that state_folder gives."""
        return Path(self.engines) if self.engines is not None else state_folder("engines")
