"""Documents of a repository as JSON, and the paths of each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.zoo.manifest import Count, Name, Sha256

INDEX = "index.json"
PLANS = "plans"
ROLLOUT = "rollouts/current.json"

MAX_FILE_BYTES = 2**31 - 1  # the same limit as zoo.store has for weights
MAX_SERIAL = 2**53  # the largest that a line of usage can report

FilePath = Annotated[str, Meta(pattern=r"^(calibration/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", max_length=255)]
Size = Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]
Serial = Annotated[int, Meta(ge=1, le=MAX_SERIAL)]


class File(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of a bundle: its path in the family's folder, its SHA-256, its size, and the size of its gzipped blob."""

    name: FilePath
    sha256: Sha256
    bytes: Size
    compressed_bytes: Annotated[int, Meta(ge=1, le=MAX_FILE_BYTES)]

    @property
    def blob(self) -> str:
        """Path of its gzipped content in the repository; equal files share one blob."""
        return f"blobs/{self.sha256}.gz"


class BundledModel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model of a bundle, and the names of its files, which models may share."""

    name: Name
    files: tuple[FilePath, ...]


class Bundle(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One family at one version; versions only rise. models: cheapest first."""

    format: Literal["jetsel-bundle-1"] = "jetsel-bundle-1"
    family: Name
    version: Count
    models: tuple[BundledModel, ...]
    files: tuple[File, ...]

    def __post_init__(self) -> None:
        if len({file.name for file in self.files}) != len(self.files):
            raise ValueError("files: a name occurs twice")

    def files_for(self, models: Collection[str]) -> tuple[File, ...]:
        """Return the files that a device with these models needs: the models' files, and those of no model."""
        of_any = {name for model in self.models for name in model.files}
        names = {name for model in self.models if model.name in models for name in model.files}
        return tuple(file for file in self.files if file.name in names or file.name not in of_any)


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bundle's entry in the index. sha256: of its signed document."""

    family: Name
    version: Count
    sha256: Sha256

    @property
    def path(self) -> str:
        """Path of the bundle's document in the repository."""
        return f"bundles/{self.sha256}.json"


class Index(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a repository offers. serial: rises with each change."""

    format: Literal["jetsel-index-1"] = "jetsel-index-1"
    serial: Count
    bundles: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if len({entry.family for entry in self.bundles}) != len(self.bundles):
            raise ValueError("bundles: a family occurs twice")


class PlannedFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Models of one bundle that a device must hold.

    cascade: the models that are expected to answer, first to last. accuracy: expected share of its requests with a
    right answer in time. mean_ms: expected time of an answer. None if unknown.
    """

    bundle: Entry
    models: Annotated[tuple[Name, ...], Meta(min_length=1)]
    cascade: tuple[Name, ...] = ()
    accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None
    mean_ms: Annotated[float, Meta(ge=0)] | None = None


class Plan(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that one device must hold. serial: rises with each of its plans. because: the reason, in words."""

    format: Literal["jetsel-plan-1"] = "jetsel-plan-1"
    device: Name
    serial: Serial
    families: Annotated[tuple[PlannedFamily, ...], Meta(min_length=1)]
    because: str = ""

    def __post_init__(self) -> None:
        if len({one.bundle.family for one in self.families}) != len(self.families):
            raise ValueError("families: a family occurs twice")


class RolloutDevice(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A device of a roll-out: its new plan, and the families of the previous plan, empty if it had none."""

    plan: Plan
    before: tuple[PlannedFamily, ...] = ()


class Rollout(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Plans that are released in waves. devices: in the order of the waves. waves: number of devices after each wave.

    serial: rises with each change. released: number of released waves. stopped: why no further wave may follow, else
    None.
    """

    format: Literal["jetsel-rollout-1"] = "jetsel-rollout-1"
    serial: Count = 1
    devices: Annotated[tuple[RolloutDevice, ...], Meta(min_length=1)]
    waves: Annotated[tuple[Count, ...], Meta(min_length=1)]
    released: Annotated[int, Meta(ge=0)] = 0
    stopped: str | None = None

    @property
    def released_devices(self) -> tuple[RolloutDevice, ...]:
        """Devices whose wave is released."""
        return self.devices[: self.waves[self.released - 1]] if self.released else ()


def plan_path(device: str) -> str:
    """Return the path of a device's plan in the repository."""
    return f"{PLANS}/{device}.json"
