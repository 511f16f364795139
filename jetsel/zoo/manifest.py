"""The manifest of a model: a JSON file beside its weights, validated when it is read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jetsel.base import names
from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.image import InputSpec

MAX_BYTES = 65_536  # a larger manifest is refused unread; those that jetsel writes are under 2 KB

_OPERATIONS_PER_MS = 20e6  # multiply-accumulates on one core of a desktop; 20 to 40 million with the starter family

Name = Annotated[str, Meta(pattern=names.PATTERN, max_length=names.MAX_LENGTH)]
FileName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", max_length=255)]  # no path to another folder
Version = Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Count = Annotated[int, Meta(ge=1)]
Sentence = Annotated[str, Meta(min_length=1)]


class ManifestHead(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A trained last layer on the embedding of the model in `Manifest.file`, its backbone, with `backbone_classes`."""

    file: FileName
    sha256: Sha256
    backbone_classes: Count


class DerivedFrom(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model of the same family that this one was made from. identity: see Manifest. recipe: how, such as 8 bits."""

    name: Name
    identity: Sha256
    recipe: Sentence


class PrecisionChoice(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why `jetsel models pull` added this precision of a model.

    float_ms, int8_ms: median latency of one image, None if not timed. machine: board or processor, None if unknown.
    """

    float_ms: Annotated[float, Meta(gt=0)] | None = None
    int8_ms: Annotated[float, Meta(gt=0)] | None = None
    machine: Sentence | None = None


class Preprocessing(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where `Manifest.input` comes from. is_checked: True if the model was right on labelled images prepared so."""

    source: Sentence
    is_checked: bool = False

    def checked(self, images: int) -> Preprocessing:
        """Return a copy that says that this number of labelled images confirmed the preprocessing."""
        return Preprocessing(source=f"{self.source}; checked on {images} images", is_checked=True)


class Tensors(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Identifies weights by their tensors' hash and a recipe for the graph, as a file's bytes vary with exporters."""

    sha256: Sha256
    recipe: Sentence


class Provenance(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a model comes from.

    source: text for people, such as the package. origin: folder or collection of the model; jetsel compares it, and
    adds models of one origin to one family. notice: what users must know, None for nothing. licence: the text that came
    with the weights. derived_from: None unless `jetsel models optimize` made the model. precision_choice: None unless
    it was pulled as the faster of two precisions.
    """

    source: Sentence
    notice: Sentence | None = None
    licence: Sentence | None = None
    origin: Sentence | None = None
    derived_from: DerivedFrom | None = None
    precision_choice: PrecisionChoice | None = None


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model: its files, input, outputs, cost and source.

    sha256: of the weights file, in hexadecimal; several models may share the file. embedding_width: None if the model
    has only logits, (n, classes); otherwise it also has the output embedding, (n, embedding_width). latency_ms: of one
    image, on the machine where the model was added. multiply_accumulates: of one image, if there is no latency.
    parameters: number of weights. head: None if the weights' own last layer answers. preprocessing: None if jetsel
    ships or pulled the model.
    """

    name: Name
    version: Version
    family: Name
    file: FileName
    sha256: Sha256
    labels: FileName
    input: InputSpec
    embedding_width: Count | None = None
    latency_ms: Annotated[float, Meta(gt=0)] | None = None
    multiply_accumulates: Count | None = None
    parameters: Count
    tensors: Tensors | None = None
    head: ManifestHead | None = None
    provenance: Provenance
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        if self.latency_ms is None and self.multiply_accumulates is None:
            raise ValueError("latency_ms: missing; write the time of one image in ms, which orders a family's models")

    def changed(self, **changes: Any) -> Manifest:
        """Return a copy with some fields changed; raises ManifestError if a value is invalid."""
        return manifest_of(msgspec.to_builtins(self) | changes)

    @property
    def others(self) -> dict[str, str]:
        """Name -> SHA-256, in hexadecimal, of each file that the model needs beside weights and labels."""
        return {} if self.head is None else {self.head.file: self.head.sha256}

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files that the model needs beside its manifest."""
        return (self.file, self.labels, *self.others)

    @property
    def identity(self) -> str:
        """A hash, in hexadecimal, of what decides the model's answers; recordings and calibrations bind to it.

        It covers the tensors (or the file, if their hash is unknown), the recipe, the input and the head.
        """
        items = sorted(msgspec.to_builtins(self.input).items())
        spec = {key: value for key, value in items if value is not None}
        head = [] if self.head is None else [self.head.sha256]
        weights = (self.sha256, None) if self.tensors is None else (self.tensors.sha256, self.tensors.recipe)
        plain = msgspec.json.encode([*weights, spec, *head])
        return hashlib.sha256(plain).hexdigest()

    @property
    def is_unproven(self) -> bool:
        """True if the preprocessing came from an owner's or exporter's description and no images have confirmed it."""
        return self.preprocessing is not None and not self.preprocessing.is_checked

    @property
    def cost_ms(self) -> float:
        """Cost of one image, by which a family is ordered: the measured latency, or an estimate from operations."""
        if self.latency_ms is not None:
            return self.latency_ms
        return (self.multiply_accumulates or 0) / _OPERATIONS_PER_MS


def read_manifest(path: Path) -> Manifest:
    """Read one manifest; raises ManifestError if it is unreadable or invalid."""
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; let the daemon read it") from error
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{path}: {_fault_text(error)}; correct it there, or delete the file") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{path}: not JSON: {error}; correct it there, or delete the file") from None


def manifest_of(plain: dict[str, Any]) -> Manifest:
    """Return the manifest with these fields, as in JSON; raises ManifestError if a value is invalid."""
    try:
        return msgspec.convert(plain, Manifest)
    except msgspec.ValidationError as error:
        raise ManifestError(_fault_text(error)) from None


def _fault_text(error: msgspec.ValidationError) -> str:
    """Return msgspec's error as `field: problem`; for names and versions, the rule replaces msgspec's pattern."""
    what, _, key = str(error).rstrip("`").partition(" - at `$.")
    rules = {"name": names.RULE, "family": names.RULE, "version": "write three numbers, as in 1.0.0"}
    words = rules.get(key.rpartition(".")[2], what.replace("`int`", "a whole number"))
    return f"{key}: {words}" if key else str(error)
