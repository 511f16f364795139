"""What a repository says: an index of bundles, for each family a bundle of files, for each device a plan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.zoo.manifest import Count, Name, Sha256

INDEX = "index.json"
PLANS = "plans"
ROLLOUT = "rollouts/current.json"

MAX_FILE_BYTES = 2**31 - 1  # as zoo.store has it of weights
MAX_SERIAL = 2**53  # the largest that a line of usage can report

FilePath = Annotated[str, Meta(pattern=r"^(calibration/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", max_length=255)]
Size = Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]
Serial = Annotated[int, Meta(ge=1, le=MAX_SERIAL)]


class File(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of a bundle: its path in the family's folder, its SHA-256, and its bytes, also as its blob has them."""

    name: FilePath
    sha256: Sha256
    bytes: Size
    compressed_bytes: Annotated[int, Meta(ge=1, le=MAX_FILE_BYTES)]

    @property
    def blob(self) -> str:
        """Where the repository has its content, gzipped; equal files are one blob."""
        return f"blobs/{self.sha256}.gz"


class BundledModel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model of a bundle and the names of its files, which models may share."""

    name: Name
    files: tuple[FilePath, ...]


class Bundle(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One family at one version, which only rises. models: cheapest first."""

    format: Literal["jetsel-bundle-1"] = "jetsel-bundle-1"
    family: Name
    version: Count
    models: tuple[BundledModel, ...]
    files: tuple[File, ...]

    def __post_init__(self) -> None:
        if len({file.name for file in self.files}) != len(self.files):
            raise ValueError("files: a name occurs twice")

    def files_for(self, models: Collection[str]) -> tuple[File, ...]:
        """Return the files that a device with these models needs: theirs, and those that are no model's."""
        of_any = {name for model in self.models for name in model.files}
        names = {name for model in self.models if model.name in models for name in model.files}
        return tuple(file for file in self.files if file.name in names or file.name not in of_any)


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bundle as the index names it. sha256: of its signed document."""

    family: Name
    version: Count
    sha256: Sha256

    @property
    def path(self) -> str:
        """Where the repository has the bundle's document."""
        return f"bundles/{self.sha256}.json"


class Index(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that a repository offers. serial: rises whenever it changes."""

    format: Literal["jetsel-index-1"] = "jetsel-index-1"
    serial: Count
    bundles: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if len({entry.family for entry in self.bundles}) != len(self.bundles):
            raise ValueError("bundles: a family occurs twice")


class PlannedFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a device holds of a family: these models of one bundle.

    cascade: the models that are expected to answer, first to last. accuracy: the share of its requests that is expected
    to be answered right and in time; mean_ms: of an answer; None if they are not known.
    """

    bundle: Entry
    models: Annotated[tuple[Name, ...], Meta(min_length=1)]
    cascade: tuple[Name, ...] = ()
    accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None
    mean_ms: Annotated[float, Meta(ge=0)] | None = None


class Plan(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that one device holds. serial: rises with each plan of this device. because: why, for people."""

    format: Literal["jetsel-plan-1"] = "jetsel-plan-1"
    device: Name
    serial: Serial
    families: Annotated[tuple[PlannedFamily, ...], Meta(min_length=1)]
    because: str = ""

    def __post_init__(self) -> None:
        if len({one.bundle.family for one in self.families}) != len(self.families):
            raise ValueError("families: a family occurs twice")


class Rolled(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A device of a roll-out: the plan that it gets, and the families of the one before, none if it had none."""

    plan: Plan
    before: tuple[PlannedFamily, ...] = ()


class Rollout(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Plans that go out in waves. devices: in the order of the waves. waves: how many of them have it after each.

    serial: rises with each change. released: how many waves are out. stopped: why no other follows, None if one may.
    """

    format: Literal["jetsel-rollout-1"] = "jetsel-rollout-1"
    serial: Count = 1
    devices: Annotated[tuple[Rolled, ...], Meta(min_length=1)]
    waves: Annotated[tuple[Count, ...], Meta(min_length=1)]
    released: Annotated[int, Meta(ge=0)] = 0
    stopped: str | None = None

    @property
    def out(self) -> tuple[Rolled, ...]:
        """Those whose wave is out."""
        return self.devices[: self.waves[self.released - 1]] if self.released else ()


def plan_path(device: str) -> str:
    """Return where a repository has the plan of a device."""
    return f"{PLANS}/{device}.json"
