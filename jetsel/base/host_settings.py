"""The settings of the engine host, as plain values: what [host] of the configuration hands to the engines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Precision = Literal["fp32", "fp16", "int8"]


@dataclass(frozen=True)
class HostSettings:
    """What `jetsel config` prints under [host].

    folder: of the engines built on this device. interpreter: None for the one that JetPack brings TensorRT for.
    max_batch: photographs of one run that engines are built for. workspace_bytes: of memory that a build may try its
    tactics in. reserve_bytes: of memory, left free by every load.
    """

    folder: Path
    interpreter: str | None = None
    precision: Precision = "fp16"
    max_batch: int = 8
    workspace_bytes: int = 512_000_000
    reserve_bytes: int = 256_000_000
