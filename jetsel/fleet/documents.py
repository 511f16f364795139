"""What a repository says of itself: an index of bundles, and for each family a bundle of files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.zoo.manifest import Count, Name, Sha256

INDEX = "index.json"

MAX_FILE_BYTES = 2**31 - 1  # as zoo.store has it of weights

FilePath = Annotated[str, Meta(pattern=r"^(calibration/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", max_length=255)]
Size = Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]


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


class Bundle(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One family at one version, which only rises. models: their names, cheapest first, the multiplexer last."""

    format: Literal["jetsel-bundle-1"] = "jetsel-bundle-1"
    family: Name
    version: Count
    models: tuple[Name, ...]
    files: tuple[File, ...]

    def __post_init__(self) -> None:
        if len({file.name for file in self.files}) != len(self.files):
            raise ValueError("files: a name stands there twice")


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
            raise ValueError("bundles: a family stands there twice")

    def entry(self, family: str) -> Entry | None:
        """Return the family's bundle, None where there is none."""
        return next((entry for entry in self.bundles if entry.family == family), None)
