"""The folder that engines are built into: one builder at a time, each engine whole or not there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jetsel.base import files, versions
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building.plans import RECORD, EnginePlan, Key, PlanRecord


@contextmanager
def working_folder(folder: Path, needed_bytes: int, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Give a folder to build in, for as long as a `with` lasts; the folder of engines is made if there is none.

    Two builds at once would take each other's memory, and time their tactics wrongly, so others wait. needed_bytes:
    free space without which a build is not begun. waiting: called once if another builder has to be waited for.
    Raises EngineFailedError with the repair, also for an OSError of the block.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < needed_bytes:
            raise EngineFailedError(
                f"{folder} has {free_bytes / 1e6:.0f} MB free, and a build may need {needed_bytes / 1e6:.0f} MB: free "
                "some space (engines of earlier versions lie there, too), or choose another folder with [host] engines"
            )
        with versions.working_folder(
            folder, lambda name: (folder / name).with_suffix(RECORD).exists(), waiting
        ) as work:
            for left in folder.glob("*.cache.*"):  # of a host that was killed while it wrote one
                left.unlink()
            yield work
    except OSError as fault:
        repair = files.repair_of(fault, "choose another folder with [host] engines")
        said = f"{folder}: engines cannot be saved there ({fault.strerror or fault}): {repair}"
        raise EngineFailedError(said) from None


def install(work: Path, plan: Path, record: PlanRecord) -> EnginePlan:
    """Move a plan and its record from the working folder into the folder; return the engine. Raises OSError."""
    described = plan.with_suffix(RECORD)
    files.write(described, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    versions.publish(work, [plan.name, described.name])
    return EnginePlan(work.parent / plan.name, record)


def timing_cache(folder: Path, key: Key) -> Path:
    """Return where the builder's timings for this device and TensorRT lie; they are of no use to any other."""
    return folder / f"timing-{_plain(key.gpu)}-{key.compute_capability}-{_plain(key.tensorrt)}.cache"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:64]
