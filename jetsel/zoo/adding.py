"""Adds a model to a folder: one from a file, which is tried first, or a head; describes one made of another."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from jetsel.base.errors import ManifestError
from jetsel.base.weights import TrialRun, Weights
from jetsel.zoo.classifier import Classifier, classifier_of
from jetsel.zoo.conventions import with_size
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import DerivedFrom, Manifest, ManifestHead, Preprocessing, Provenance, Tensors, manifest_of
from jetsel.zoo.onnx_model import OnnxFile, count_weights
from jetsel.zoo.placing import FamilyRequest, NewFamily, choose_family, place_model, working_folder
from jetsel.zoo.store import STARTER, Model, Zoo, scan

RunTrial = Callable[[Weights], TrialRun]  # runs a model
CheckPreprocessing = Callable[[Weights, Labels, Manifest | None], Preprocessing | None]
"""Returns the preprocessing for the manifest; raises if it is wrong, or if there is no manifest yet."""


@dataclass(frozen=True, kw_only=True)
class ModelDescription(FamilyRequest):
    """A new model, except for its file; None values are read from the file.

    spec: a convention, see zoo/conventions.py. provenance: its origin is that of the request. exclusive: each image has
    exactly one class, although the model ends in a sigmoid. weights: base name of a weights file that several models
    share. tensors, preprocessing: see Manifest.
    """

    name: str
    spec: dict[str, Any]
    input_px: tuple[int, int] | None
    provenance: Provenance
    version: str = "1.0.0"
    output: str | None = None
    exclusive: bool = False
    weights: str | None = None
    tensors: Tensors | None = None
    preprocessing: Preprocessing | None = None


@dataclass(frozen=True)
class AddTarget:
    """The models among which a new one is added, and the folder for it: the owner's, or else the default."""

    zoo: Zoo
    default: Path
    folder: Path | None = None

    @classmethod
    def of(cls, folders: Sequence[Path], default: Path, folder: Path | None) -> AddTarget:
        """Read the models: those in `folders`, which the daemon reads, unless the owner's folder is another."""
        if folder is None or folder.resolve() in [one.resolve() for one in folders]:
            return cls(scan(folders), default, folder)
        return cls(scan([folder] if folder.is_dir() else []), default, folder)

    def replaced_model(self, family: str, name: str, *, replace: bool) -> Model | None:
        """Return the model of this name to replace, None if there is none; raises ManifestError if it must stay."""
        there = self.zoo.models(family).get(name)
        if there is None:
            return None
        where = f"family {family} has a model {name} in {there.directory}"
        if self.folder is not None and self.folder.resolve() != there.directory.resolve():
            reason = f"{where}, which the daemon reads too"
            raise ManifestError(f"--folder {self.folder}: {reason}: choose another name with --name")
        if not replace:
            raise ManifestError(f"{where}: choose another name with --name; --replace overwrites it")
        return there


@dataclass(frozen=True)
class AddedModel:
    """An added model and its number of classes. notes: about its family, for the owner. changes: made to its file."""

    model: Model
    classes: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def add_model(
    file: OnnxFile,
    description: ModelDescription,
    where: AddTarget,
    try_it: RunTrial,
    *,
    replace: bool,
    check: CheckPreprocessing | None = None,
) -> AddedModel:
    """Add the model in a file.

    check: proves the preprocessing. Raises ManifestError or the errors of `try_it` and `check`; then nothing is added.
    """
    name = description.name
    family = choose_family(where.zoo, description, [name], replace=replace)
    replaced = where.replaced_model(family.name, name, replace=replace)
    target = replaced.directory if replaced is not None else where.folder or where.default
    if target.resolve() == STARTER.resolve():
        raise ManifestError(f"{target}: holds the family that ships with jetsel: name another folder with --folder")
    classes, exclusive = len(family.labels.names), description.exclusive
    classifier = classifier_of(
        file.model, file.path.name, classes, description.input_px, description.output, exclusive=exclusive
    )
    changes = (*(f"its weights in {one} were taken in" for one in file.taken_in), *classifier.changes)
    content = classifier.served() if changes else file.content
    sha256 = hashlib.sha256(content).hexdigest()
    with working_folder(target) as work:
        copy = work / "model.onnx"
        copy.write_bytes(content)
        weights = Weights(name, copy, sha256, classifier.image.height_px, classifier.image.width_px, classes)
        tried = try_it(weights)
        if check is not None and description.preprocessing is None:
            check(weights, family.labels, None)
        about = {
            "family": family.name,
            "file": f"{family.name}.{description.weights or name}.{sha256[:12]}.onnx",
            "sha256": sha256,
            "labels": family.labels.file_of(family.name),
            "provenance": _provenance(description, file, changes),
        }
        manifest = manifest_of(_measured_values(description, classifier, tried) | about)
        if check is not None:
            manifest = manifest.changed(preprocessing=check(weights, family.labels, manifest))
        return AddedModel(place_model(work, copy, family.labels, manifest, replaced), classes, family.notes, changes)


def _provenance(description: ModelDescription, file: OnnxFile, changes: Sequence[str]) -> Provenance:
    source = description.provenance.source
    if changes:
        theirs = hashlib.sha256(file.content).hexdigest()
        source += f"; changed from a file of sha256 {theirs}: {'; '.join(changes)}"
    return structs.replace(description.provenance, source=source, origin=description.origin)


def _measured_values(description: ModelDescription, classifier: Classifier, tried: TrialRun) -> dict[str, Any]:
    """Return the values of the manifest that the description, the graph and a trial run give."""
    image = classifier.image
    return {
        "name": description.name,
        "version": description.version,
        "input": with_size(classifier.spec(description.spec), image.width_px, image.height_px),
        "embedding_width": tried.embedding_width,
        "latency_ms": tried.latency_ms,
        "parameters": count_weights(classifier.model),
        "tensors": description.tensors,
        "preprocessing": description.preprocessing,
    }


def derived_manifest(
    parent: Manifest, name: str, sha256: str, labels: Labels, trial: TrialRun, weight_count: int, method: str
) -> Manifest:
    """Return the manifest of a model derived from `parent`.

    sha256: of its file. tried: the result of a trial run. parameters: number of weights. words: how it was made.
    """
    before = parent.provenance
    return parent.changed(
        name=name,
        file=f"{parent.family}.{name}.{sha256[:12]}.onnx",
        sha256=sha256,
        labels=labels.file_of(parent.family),
        embedding_width=trial.embedding_width,
        latency_ms=trial.latency_ms,
        multiply_accumulates=None,  # not needed beside latency_ms
        parameters=weight_count,
        tensors=None,
        provenance=structs.replace(
            before,
            source=f"{before.source}; made of {parent.name}: {method}",
            derived_from=DerivedFrom(name=parent.name, identity=parent.identity, recipe=method),
            precision_choice=None,
        ),
    )


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Add a model made of a backbone and a head to a folder, or replace `old`; raises ManifestError.

    head: the content of its file. classes: number of the backbone's own classes. The backbone's file is copied unless
    the folder holds it already.
    """
    before, sha256 = backbone.manifest, hashlib.sha256(head).hexdigest()
    file = f"{family.name}.{before.name}.{sha256[:12]}.npz"
    classes = classes if before.head is None else before.head.backbone_classes
    source = f"{family.source}, on {before.provenance.source}"
    manifest = before.changed(
        family=family.name,
        labels=family.labels.file_of(family.name),
        head=ManifestHead(file=file, sha256=sha256, backbone_classes=classes),
        provenance=structs.replace(before.provenance, source=source, origin=family.origin, precision_choice=None),
    )
    with working_folder(folder if old is None else old.directory) as work:
        copy = work / "model.onnx"
        shutil.copyfile(backbone.path, copy)
        return place_model(work, copy, family.labels, manifest, old, {file: head})
