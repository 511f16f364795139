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

RunTrial = Callable[[Weights], TrialRun]  # loads and runs a model; raises if it cannot run
CheckPreprocessing = Callable[[Weights, Labels, Manifest | None], Preprocessing | None]
"""Tests a model's preprocessing on labelled images; returns it for the manifest, or raises if it is wrong."""


@dataclass(frozen=True, kw_only=True)
class ModelDescription(FamilyRequest):
    """What to write into a new model's manifest, and how to read its file.

    spec: values of InputSpec without the size (zoo/conventions.py). input_px: width and height, None for the graph's.
    output: tensor of logits, None to find it. exclusive: each image has one class although the model ends in a sigmoid.
    weights: base name for a file that several models share, or None. provenance: `origin` here replaces its own.
    tensors, preprocessing: see Manifest.
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
    """Where to add a model. zoo: the models beside it. folder: the owner's choice; if None, `default` is used."""

    zoo: Zoo
    default: Path
    folder: Path | None = None

    @classmethod
    def of(cls, folders: Sequence[Path], default: Path, folder: Path | None) -> AddTarget:
        """Return a target whose zoo is read from `folders`, the daemon's, or from `folder` alone if not among them."""
        if folder is None or folder.resolve() in [path.resolve() for path in folders]:
            return cls(scan(folders), default, folder)
        return cls(scan([folder] if folder.is_dir() else []), default, folder)

    def replaced_model(self, family: str, name: str, *, replace: bool) -> Model | None:
        """Return the model of this name to replace, None if there is none; raises ManifestError if it must stay."""
        model = self.zoo.models(family).get(name)
        if model is None:
            return None
        conflict = f"family {family} has a model {name} in {model.directory}"
        if self.folder is not None and self.folder.resolve() != model.directory.resolve():
            reason = f"{conflict}, which the daemon reads too"
            raise ManifestError(f"--folder {self.folder}: {reason}: choose another name with --name")
        if not replace:
            raise ManifestError(f"{conflict}: choose another name with --name; --replace overwrites it")
        return model


@dataclass(frozen=True)
class AddedModel:
    """A model after it was added. notes: about its family, for the owner. changes: those made to its ONNX file."""

    model: Model
    classes: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def add_model(
    file: OnnxFile,
    description: ModelDescription,
    target: AddTarget,
    run_trial: RunTrial,
    *,
    replace: bool,
    check: CheckPreprocessing | None = None,
) -> AddedModel:
    """Add the model in an ONNX file after a trial run, adapted to jetsel's input and outputs if it needs that.

    replace: True to replace a model of the same name. check: tests the preprocessing, None to trust it. Raises
    ManifestError, or what `run_trial` and `check` raise; then nothing is added.
    """
    name = description.name
    family = choose_family(target.zoo, description, [name], replace=replace)
    replaced = target.replaced_model(family.name, name, replace=replace)
    folder = replaced.directory if replaced is not None else target.folder or target.default
    if folder.resolve() == STARTER.resolve():
        raise ManifestError(f"{folder}: holds the family that ships with jetsel: name another folder with --folder")
    classes, options = len(family.labels.names), (description.input_px, description.output)
    classifier = classifier_of(file.model, file.path.name, classes, *options, exclusive=description.exclusive)
    changes = (*(f"its weights in {weights_name} were taken in" for weights_name in file.taken_in), *classifier.changes)
    served_content = classifier.served() if changes else file.content
    sha256 = hashlib.sha256(served_content).hexdigest()
    with working_folder(folder) as work:
        weights_path = work / "model.onnx"
        weights_path.write_bytes(served_content)
        weights = Weights(name, weights_path, sha256, classifier.image.height_px, classifier.image.width_px, classes)
        trial = run_trial(weights)
        if check is not None and description.preprocessing is None:
            check(weights, family.labels, None)
        manifest_values = {
            "family": family.name,
            "file": f"{family.name}.{description.weights or name}.{sha256[:12]}.onnx",
            "sha256": sha256,
            "labels": family.labels.file_of(family.name),
            "provenance": _provenance(description, file, changes),
        }
        manifest = manifest_of(_measured_values(description, classifier, trial) | manifest_values)
        if check is not None:
            manifest = manifest.changed(preprocessing=check(weights, family.labels, manifest))
        model = place_model(work, weights_path, family.labels, manifest, replaced)
        return AddedModel(model, classes, family.notes, changes)


def _provenance(description: ModelDescription, file: OnnxFile, changes: Sequence[str]) -> Provenance:
    """Return the described provenance with the changes made to the file, and with the request's origin."""
    source = description.provenance.source
    if changes:
        original_sha256 = hashlib.sha256(file.content).hexdigest()
        source += f"; changed from a file of sha256 {original_sha256}: {'; '.join(changes)}"
    return structs.replace(description.provenance, source=source, origin=description.origin)


def _measured_values(description: ModelDescription, classifier: Classifier, trial: TrialRun) -> dict[str, Any]:
    """Return the manifest's fields that come from the description, the graph and the trial run."""
    image = classifier.image
    return {
        "name": description.name,
        "version": description.version,
        "input": with_size(classifier.spec(description.spec), image.width_px, image.height_px),
        "embedding_width": trial.embedding_width,
        "latency_ms": trial.latency_ms,
        "parameters": count_weights(classifier.model),
        "tensors": description.tensors,
        "preprocessing": description.preprocessing,
    }


def derived_manifest(
    parent: Manifest, name: str, sha256: str, labels: Labels, trial: TrialRun, weight_count: int, method: str
) -> Manifest:
    """Return the manifest of a model that was made from `parent` by `method`. sha256: of the new model's ONNX file."""
    origin = parent.provenance
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
            origin,
            source=f"{origin.source}; made of {parent.name}: {method}",
            derived_from=DerivedFrom(name=parent.name, identity=parent.identity, recipe=method),
            precision_choice=None,
        ),
    )


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Add a model that consists of a backbone's ONNX file, which is copied, and a head: a trained last layer.

    head: content of its file, see `Head.content`. classes: number of the backbone's own classes. old: model to replace
    in its own folder; if None, the model is added to `folder`. Raises ManifestError.
    """
    parent, sha256 = backbone.manifest, hashlib.sha256(head).hexdigest()
    file = f"{family.name}.{parent.name}.{sha256[:12]}.npz"
    classes = classes if parent.head is None else parent.head.backbone_classes
    source = f"{family.source}, on {parent.provenance.source}"
    manifest = parent.changed(
        family=family.name,
        labels=family.labels.file_of(family.name),
        head=ManifestHead(file=file, sha256=sha256, backbone_classes=classes),
        provenance=structs.replace(parent.provenance, source=source, origin=family.origin, precision_choice=None),
    )
    with working_folder(folder if old is None else old.directory) as work:
        weights_path = work / "model.onnx"
        shutil.copyfile(backbone.path, weights_path)
        return place_model(work, weights_path, family.labels, manifest, old, {file: head})
