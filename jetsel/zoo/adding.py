"""Adds one model to a folder, a head on a backbone that is there, or a model made of another; each is tried first."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import msgspec

from jetsel.base.errors import ManifestError, did_you_mean
from jetsel.base.names import path_text, plain_name
from jetsel.base.weights import TrialRun, Weights
from jetsel.image import InputSpec
from jetsel.zoo.classifier import EMBEDDING, LOGITS, Classifier, classifier_of
from jetsel.zoo.conventions import sized
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import DerivedFrom, Manifest, ManifestHead, PrecisionChoice, Preprocessing, manifest_of
from jetsel.zoo.onnx_model import parameters, read_whole
from jetsel.zoo.placing import FamilyRequest, NewFamily, choose_family, labels_of, put, working_folder
from jetsel.zoo.store import STARTER, Family, Model, Zoo, scan

Try = Callable[[Weights], TrialRun]
"""Runs a model."""
Check = Callable[[Weights, Labels, Manifest | None], Preprocessing | None]
"""Returns what the manifest is to say of its preprocessing; raises if it is wrong, or if there is no manifest yet."""


@dataclass(frozen=True, kw_only=True)
class ModelDescription(FamilyRequest):
    """What is known of a model beside its file; None is found out.

    spec: a convention, see zoo/conventions.py. weights: what the file is named after if several models share it.
    exclusive: whether each image has exactly one class although the model gives each a probability by itself.
    tensors_sha256, recipe, licence, precision_choice, preprocessing: see Manifest.
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
    """Where models are: the folders that the daemon reads, and where one is added unless `folder` says another."""

    folders: Sequence[Path]
    default: Path
    folder: Path | None

    @property
    def is_read(self) -> bool:
        """Whether the daemon reads the folder: one that it does not may hold models of the same names."""
        return self.folder is None or self.folder.resolve() in [folder.resolve() for folder in self.folders]


@dataclass(frozen=True)
class Added:
    """The model as it was added, how many classes it has, and what its owner should know of its family.

    changes: what was put right in its file, one line each.
    """

    model: Model
    classes: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def add_model(
    onnx: Path, description: ModelDescription, where: Where, try_it: Try, *, replace: bool, check: Check | None = None
) -> Added:
    """Add the model in the file `onnx`, or change nothing.

    check: proves the preprocessing. Raises ManifestError, or what `try_it` and `check` do, that names the repair.
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
    """Return the manifest of a file with this hash.

    labels_sha256: of the family's labels. spec: what it takes. tried: what it was seen to do. parameters: numbers
    in its weights. words: how it was made.
    """
    is_same = sha256 == parent.sha256  # then only what it takes differs
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
        multiply_accumulates=None,  # it has a latency
        parameters=parameters,
        tensors_sha256=parent.tensors_sha256 if is_same else None,
        recipe=parent.recipe if is_same else None,
        source=f"{parent.source}; made of {parent.name}: {words}",
        derived_from=DerivedFrom(name=parent.name, identity=parent.identity, recipe=words),
        precision_choice=None,
    )


def family_of_heads(
    zoo: Zoo, backbone: Family, name: str | None, photos: Path, labels: bytes, *, replace: bool
) -> tuple[NewFamily, dict[str, Model]]:
    """Return the family of heads for a folder of images, and the models that they replace, by name.

    name: the one that the owner names. labels: of the folder's classes; those returned have the family's own order.
    Raises ManifestError, which names the repair, before anything is trained.
    """
    place, likely = path_text(photos.resolve()), plain_name(photos.resolve().name)
    request = FamilyRequest(family=name, likely_family=likely, labels=labels, labels_from=photos, origin=place)
    names = [model.manifest.name for model in backbone.models]
    family = choose_family(zoo, request, names, are_heads=True, replace=replace)
    models = zoo.families[family.name].models if family.name in zoo.families else ()
    there = {model.manifest.name: model for model in models if model.manifest.name in names}
    if there and not replace:
        again = "; --replace trains them again" if place in {one.manifest.origin for one in there.values()} else ""
        raise ManifestError(
            f"family {family.name} has {', '.join(there)} already: for heads beside them, for another kind of images, "
            f"use --family {family.name} --name KIND; for a family of its own, choose another name with --family{again}"
        )
    others = {one.manifest.origin or place for one in models} - {place}
    adds = "" if there else f": this adds {len(names)} heads of the backbone {backbone.name}"
    notes = [
        f"family {family.name} has heads of {one} too{adds}, in one cascade with them; for another light or "
        "camera, use --name KIND"
        for one in sorted(others)
    ]
    return with_(family, source=f"head for {Path(place).name}", origin=place, notes=(*family.notes, *notes)), there


def heads_beside(
    zoo: Zoo, name: str, kind: str, base: str | None, photos: Path, *, replace: bool
) -> tuple[Family, NewFamily, dict[str, Model]]:
    """Return the backbones of heads for another kind of images, their family, and the models that they replace by name.

    The backbones have the names of the new models. name: of the family, whose labels stay. base: the one of its models
    to build on, None for one on each backbone. Raises ManifestError, which names the repair, before anything is
    trained.
    """
    family = zoo.families.get(name)
    if family is None:
        near = did_you_mean(name, zoo.families)
        raise ManifestError(f"there is no family {name}{near}: train its first heads without --name")
    by_name = {model.manifest.name: model for model in family.models}
    if base is not None and base not in by_name:
        near = did_you_mean(base, by_name)
        raise ManifestError(f"--backbone: family {name} has no model {base}{near}; it has {', '.join(by_name)}")
    able = {
        (model.manifest.sha256, model.manifest.input): model
        for model in reversed(family.models)  # so that of heads on the same backbone the first one names it
        if base in (None, model.manifest.name) and model.manifest.embedding_width is not None
    }
    if not able:
        raise ManifestError(f"{base or f'family {name}'}: gives no embedding, which a head is trained on")
    models = tuple(_named(model, f"{model.manifest.name}-{kind}") for model in reversed(able.values()))
    there = {model.manifest.name: by_name[model.manifest.name] for model in models if model.manifest.name in by_name}
    strange = [
        model.manifest.name
        for model in models
        if model.manifest.name in there and there[model.manifest.name].manifest.sha256 != model.manifest.sha256
    ]
    if strange:
        raise ManifestError(
            f"family {name} has {', '.join(strange)} on other backbones, as of its first training: choose another "
            f"--name, such as {kind}2"
        )
    if there and not replace:
        raise ManifestError(
            f"family {name} has {', '.join(there)} already: choose another --name; --replace trains them again"
        )
    made = NewFamily(name, labels_of(family), source=f"head for {photos.resolve().name}")
    return with_(family, models=models), made, there


def _named(base: Model, name: str) -> Model:
    """Return the backbone of a model under another name."""
    before = base.manifest
    source = f"the backbone of {before.name} ({before.source})"
    return with_(base, manifest=manifest_of(msgspec.to_builtins(before), name=name, source=source, derived_from=None))


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Put a headed model into a folder, or in the place of `old`; raises ManifestError.

    head: the content of its file. classes: of the backbone's family. The backbone's file is not copied if the folder
    holds it already.
    """
    labels = hashlib.sha256(family.labels).hexdigest()
    digest = hashlib.sha256(head).hexdigest()
    before = backbone.manifest
    classes = classes if before.head is None else before.head.backbone_classes
    file = f"{family.name}.{before.name}.{digest[:12]}.npz"
    manifest = manifest_of(
        msgspec.to_builtins(before),
        family=family.name,
        labels=f"{family.name}.{labels[:12]}.tsv",
        head=ManifestHead(file=file, sha256=digest, backbone_classes=classes),
        source=f"{family.source}, on {before.source}",
        origin=family.origin,
        precision_choice=None,
    )
    with working_folder(folder if old is None else old.directory) as work:
        copy = work / "model.onnx"
        shutil.copyfile(backbone.path, copy)
        return Model(manifest, put(work, copy, family.labels, manifest, old, {file: head}))
