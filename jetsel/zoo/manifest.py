"""What one model says of itself: a JSON manifest beside its weights, checked as it is read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jetsel.base import names
from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.image import InputSpec

MAX_BYTES = 65_536
"""Past this a manifest is refused unread: those that jetsel writes are under 2 KB."""

_OPERATIONS_PER_MS = 20e6
"""Multiply-accumulates that one core of a desktop processor does: 20 to 40 million with the starter family."""

Name = Annotated[str, Meta(pattern=names.PATTERN, max_length=names.MAX_LENGTH)]
FileName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", max_length=255)]  # so no folder, up or down
Version = Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Count = Annotated[int, Meta(ge=1)]
Sentence = Annotated[str, Meta(min_length=1)]


class ManifestHead(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A last layer of the model's own: its file, its hash, and how many classes the backbone in `Manifest.file` has."""

    file: FileName
    sha256: Sha256
    backbone_classes: Count


class DerivedFrom(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model of the same family that this one was made of: its name, its `Manifest.identity`, how it was made."""

    name: Name
    identity: Sha256
    recipe: Sentence


class PrecisionChoice(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why `jetsel models pull` added this one of a float model and the same in 8 bits.

    float_ms, int8_ms: median time of one image; None: not timed. machine: the board or processor; None: unknown.
    """

    float_ms: Annotated[float, Meta(gt=0)] | None = None
    int8_ms: Annotated[float, Meta(gt=0)] | None = None
    machine: Sentence | None = None


class Preprocessing(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `Manifest.input` was read from, and whether labelled images showed that it is right."""

    source: Sentence
    is_checked: bool = False

    def checked(self, images: int) -> Preprocessing:
        """Return the same of a preprocessing that this number of labelled images showed to be right."""
        return Preprocessing(source=f"{self.source}; checked on {images} images", is_checked=True)


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model: its weights, what it takes, what it answers, what it costs, and where it came from.

    sha256: of the file with the weights, in hexadecimal; models may share it. tensors_sha256, recipe: of its tensors,
    and how they became a graph, if the file's own bytes depend on what wrote it. latency_ms: of one photograph, on
    the machine where the model was added.
    multiply_accumulates: of one photograph, in manifests that have no latency. parameters: numbers in the weights.
    outputs: what the weights name them; logits (n, classes) always, embedding (n, embedding_width) if there is one.
    source: where the model came from; notice: what its users must know, None if there is nothing. licence: the
    text that came with the weights. origin: the folder or collection that it came from, whose later models join its
    family. head: None if the weights' own last layer answers. derived_from: None unless
    `jetsel models optimize` made it. precision_choice: None unless it was pulled as the faster one of two precisions.
    preprocessing: None if jetsel prepared the model itself, as it does those that it ships or pulls.
    """

    name: Name
    version: Version
    family: Name
    file: FileName
    sha256: Sha256
    labels: FileName
    input: InputSpec
    outputs: tuple[Literal["logits", "embedding"], ...]
    embedding_width: Count | None
    latency_ms: Annotated[float, Meta(gt=0)] | None = None
    multiply_accumulates: Count | None = None
    parameters: Count
    source: Sentence
    notice: Sentence | None
    tensors_sha256: Sha256 | None = None
    recipe: Sentence | None = None
    licence: Sentence | None = None
    origin: Sentence | None = None
    head: ManifestHead | None = None
    derived_from: DerivedFrom | None = None
    precision_choice: PrecisionChoice | None = None
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        if "logits" not in self.outputs or len(set(self.outputs)) != len(self.outputs):
            raise ValueError(f"outputs: {list(self.outputs)} must hold logits, and no name twice")
        if ("embedding" in self.outputs) != (self.embedding_width is not None):
            raise ValueError("embedding_width: must be a number if outputs has embedding, else null")
        if self.latency_ms is None and self.multiply_accumulates is None:
            raise ValueError("latency_ms: missing; write the time of one image in ms, which orders a family's models")
        if (self.tensors_sha256 is None) != (self.recipe is None):
            raise ValueError("tensors_sha256 and recipe: set both, or neither")

    @property
    def others(self) -> dict[str, str]:
        """What it needs beside weights and labels: the name of each file, and its SHA-256 in hexadecimal."""
        return {} if self.head is None else {self.head.file: self.head.sha256}

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files beside it that it needs."""
        return (self.file, self.labels, *self.others)

    @property
    def identity(self) -> str:
        """What recordings and calibrations bind to, in hexadecimal: what the model answers to a photograph.

        A hash of the tensors, how they are made a graph, the input's specification, and the head; of the file if
        nothing is said of its tensors.
        """
        items = sorted(msgspec.to_builtins(self.input).items())
        spec = {key: value for key, value in items if value is not None}
        head = [] if self.head is None else [self.head.sha256]
        plain = msgspec.json.encode([self.tensors_sha256 or self.sha256, self.recipe, spec, *head])
        return hashlib.sha256(plain).hexdigest()

    @property
    def is_unproven(self) -> bool:
        """Whether its preprocessing was described and never checked."""
        return self.preprocessing is not None and not self.preprocessing.is_checked

    @property
    def cost_ms(self) -> float:
        """What one photograph costs, to order a family by: the time that was measured, or else one by operations."""
        if self.latency_ms is not None:
            return self.latency_ms
        return (self.multiply_accumulates or 0) / _OPERATIONS_PER_MS


def read_manifest(path: Path) -> Manifest:
    """Read one manifest; raises ManifestError that names the file, the key and what is wrong."""
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(
            f"{path}: cannot be read: {error.strerror}; make it a file that the daemon may read"
        ) from error
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{path}: {_in_words(error)}; correct it there, or delete the file") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(
            f'{path}: not JSON: {error}; a manifest begins {{"name": "xs", "version": "1.0.0",'
        ) from None


def manifest_of(plain: dict[str, Any], **changes: Any) -> Manifest:
    """Return the manifest of these plain values, with changes; raises ManifestError with the key and what is wrong."""
    try:
        return msgspec.convert(plain | changes, Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(_in_words(error)) from None


def _in_words(error: msgspec.ValidationError) -> str:
    """Return what is wrong, without msgspec's paths, and without the patterns of what people choose."""
    what, _, key = str(error).rstrip("`").partition(" - at `$.")
    rules = {"name": names.RULE, "family": names.RULE, "version": "write three numbers, as in 1.0.0"}
    words = rules.get(key.rpartition(".")[2], what.replace("`int`", "a whole number"))
    return f"{key}: {words}" if key else str(error)
