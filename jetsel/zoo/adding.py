"""Adds one model to a folder, or a model made of another; each is tried first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from jetsel.base.errors import ManifestError
from jetsel.base.weights import TrialRun, Weights
from jetsel.image import InputSpec
from jetsel.zoo.classifier import EMBEDDING, LOGITS, Classifier, classifier_of
from jetsel.zoo.conventions import sized
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import DerivedFrom, Manifest, PrecisionChoice, Preprocessing, manifest_of
from jetsel.zoo.onnx_model import parameters, read_whole
from jetsel.zoo.placing import FamilyRequest, choose_family, put, working_folder
from jetsel.zoo.store import STARTER, Model, Zoo, scan

Try = Callable[[Weights], TrialRun]
"""Runs a model."""
Check = Callable[[Weights, Labels, Manifest | None], Preprocessing | None]
"""Returns the preprocessing for the manifest; raises if it is wrong, or if there is no manifest yet."""


@dataclass(frozen=True, kw_only=True)
class ModelDescription(FamilyRequest):
    """A new model, except for its file; None values are read from the file.

    spec: a convention, see zoo/conventions.py. weights: base name of a weights file that several models share.
    exclusive: each image has exactly one class, although the model ends in a sigmoid. tensors_sha256, recipe, licence,
    precision_choice, preprocessing: see Manifest.
    """

    name: str
    spec: dict[str, Any]
    input_px: tuple[int, int] | None
    source: str
    notice: str | None
    version: str = "1.0.0"
    output: str | None = None
    exclusive: bool = False
    weights: str | None = None
    tensors_sha256: str | None = None
    recipe: str | None = None
    licence: str | None = None
    precision_choice: PrecisionChoice | None = None
    preprocessing: Preprocessing | None = None


@dataclass(frozen=True, kw_only=True)
class Where:
    """The folders of models: those that the daemon reads, and the one to add to, which is `folder` or the default."""

    folders: Sequence[Path]
    default: Path
    folder: Path | None

    @property
    def is_read(self) -> bool:
        """Whether the daemon reads the folder; another folder may hold models of the same names."""
        return self.folder is None or self.folder.resolve() in [folder.resolve() for folder in self.folders]


@dataclass(frozen=True)
class Added:
    """An added model and its number of classes. notes: about its family, for the owner. changes: made to its file."""

    model: Model
    classes: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def add_model(
    onnx: Path, description: ModelDescription, where: Where, try_it: Try, *, replace: bool, check: Check | None = None
) -> Added:
    """Add the model in the file `onnx`.

    check: proves the preprocessing. Raises ManifestError or the errors of `try_it` and `check`; then nothing is added.
    """
    folder = where.folder
    folders = [] if folder is None or not folder.is_dir() else [folder]
    zoo = scan([*where.folders, *folders])
    family = choose_family(zoo, description, [description.name], replace=replace)
    labels = Labels.parse(family.labels, description.labels_from)
    replaced = _replaced(zoo if where.is_read else scan(folders), family.name, description.name, folder, replace)
    target = replaced.directory if replaced is not None else folder or where.default
    if target.resolve() == STARTER.resolve():
        raise ManifestError(f"{target}: holds the family that ships with jetsel: name another folder with --folder")
    graph, beside = read_whole(onnx)
    classifier = classifier_of(
        graph, onnx.name, len(labels.names), description.input_px, description.output, exclusive=description.exclusive
    )
    changes = (*(f"its weights in {name} were taken in" for name in beside), *classifier.changes)
    content = theirs = onnx.read_bytes()
    source = description.source
    if changes:
        content = classifier.served()
        source += f"; changed from a file of sha256 {hashlib.sha256(theirs).hexdigest()}: {'; '.join(changes)}"
    sha256 = hashlib.sha256(content).hexdigest()
    with working_folder(target) as work:
        copy = work / "model.onnx"
        copy.write_bytes(content)
        weights = Weights(
            description.name, copy, sha256, classifier.image.height_px, classifier.image.width_px, len(labels.names)
        )
        tried = try_it(weights)
        if check is not None and description.preprocessing is None:
            check(weights, labels, None)
        manifest = _manifest(description, family.name, labels, classifier, tried, sha256, source)
        if check is not None:
            manifest = manifest_of(msgspec.to_builtins(manifest), preprocessing=check(weights, labels, manifest))
        model = Model(manifest, put(work, copy, family.labels, manifest, replaced))
        return Added(model, len(labels.names), family.notes, changes)


def _manifest(
    description: ModelDescription,
    family: str,
    labels: Labels,
    classifier: Classifier,
    tried: TrialRun,
    sha256: str,
    source: str,
) -> Manifest:
    return manifest_of(
        {
            "name": description.name,
            "version": description.version,
            "family": family,
            "file": f"{family}.{description.weights or description.name}.{sha256[:12]}.onnx",
            "sha256": sha256,
            "labels": f"{family}.{labels.sha256[:12]}.tsv",
            "input": sized(classifier.spec(description.spec), classifier.image.width_px, classifier.image.height_px),
            "outputs": [LOGITS, *([EMBEDDING] if tried.embedding_width is not None else [])],
            "embedding_width": tried.embedding_width,
            "latency_ms": tried.latency_ms,
            "parameters": parameters(classifier.model),
            "source": source,
            "notice": description.notice,
            "tensors_sha256": description.tensors_sha256,
            "recipe": description.recipe,
            "licence": description.licence,
            "origin": description.origin,
            "precision_choice": description.precision_choice,
            "preprocessing": description.preprocessing,
        }
    )


def _replaced(zoo: Zoo, family: str, name: str, folder: Path | None, replace: bool) -> Model | None:
    models = zoo.families[family].models if family in zoo.families else ()
    there = next((model for model in models if model.manifest.name == name), None)
    if there is None:
        return None
    if folder is not None and folder.resolve() != there.directory.resolve():
        raise ManifestError(
            f"--folder {folder}: the daemon reads {name} of family {family} from {there.directory} too: choose another "
            "name with --name"
        )
    if not replace:
        raise ManifestError(
            f"family {family} has a model {name} in {there.directory}: choose another name with --name; --replace "
            "overwrites it"
        )
    return there


def derived(
    parent: Manifest,
    name: str,
    sha256: str,
    labels_sha256: str,
    spec: InputSpec,
    tried: TrialRun,
    parameters: int,
    words: str,
) -> Manifest:
    """Return the manifest of a model derived from `parent`. sha256: of its file. labels_sha256: of the labels file.

    tried: the result of a trial run. parameters: number of weights. words: how it was made.
    """
    is_same = sha256 == parent.sha256  # then only the input differs
    return manifest_of(
        msgspec.to_builtins(parent),
        name=name,
        file=f"{parent.family}.{name}.{sha256[:12]}.onnx",
        sha256=sha256,
        labels=f"{parent.family}.{labels_sha256[:12]}.tsv",
        input=spec,
        outputs=("logits",) if tried.embedding_width is None else ("logits", "embedding"),
        embedding_width=tried.embedding_width,
        latency_ms=tried.latency_ms,
        multiply_accumulates=None,  # not needed beside latency_ms
        parameters=parameters,
        tensors_sha256=parent.tensors_sha256 if is_same else None,
        recipe=parent.recipe if is_same else None,
        source=f"{parent.source}; made of {parent.name}: {words}",
        derived_from=DerivedFrom(name=parent.name, identity=parent.identity, recipe=words),
        precision_choice=None,
    )
