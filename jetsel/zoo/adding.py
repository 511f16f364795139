"""Adds one model to a folder, a head on a backbone that is there, or a model made of another; each is tried first."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from jetsel.base.errors import ManifestError
from jetsel.base.weights import TrialRun, Weights
from jetsel.image import InputSpec
from jetsel.zoo.classifier import EMBEDDING, LOGITS, Classifier, classifier_of
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import DerivedFrom, Head, Manifest, manifest_of
from jetsel.zoo.onnx_model import parameters, read_model, with_output
from jetsel.zoo.placing import put, working_folder
from jetsel.zoo.store import STARTER, Model, Zoo, scan

Try = Callable[[Weights, str | None], TrialRun]
"""Runs a model; the second argument is the tensor that a softmax makes its answers from, None if none does."""


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """What is known of a model beside its file; None is found out.

    family: the one wanted; None for that of the labels, or else `likely_family`. spec: of InputSpec, less the size.
    weights: what the file is named after if several models share it. tensors_sha256, recipe, licence, derived_from:
    see Manifest.
    """

    name: str
    family: str | None
    likely_family: str
    labels: bytes
    labels_from: Path
    spec: dict[str, Any]
    input_px: tuple[int, int] | None
    source: str
    notice: str | None
    version: str = "1.0.0"
    output: str | None = None
    weights: str | None = None
    tensors_sha256: str | None = None
    recipe: str | None = None
    licence: str | None = None
    derived_from: DerivedFrom | None = None


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where models are: the folders that the daemon reads, and where one is added unless `folder` says another."""

    folders: Sequence[Path]
    default: Path
    folder: Path | None

    @property
    def is_read(self) -> bool:
        """Whether the daemon reads the folder: one that it does not may hold models of the same names."""
        return self.folder is None or self.folder.resolve() in [known.resolve() for known in self.folders]


@dataclass(frozen=True)
class Added:
    """The model as it was added, and how many classes it has."""

    model: Model
    classes: int


def add_model(onnx: Path, wanted: ModelDescription, where: Where, try_it: Try, *, replace: bool) -> Added:
    """Add the model in the file `onnx`, or change nothing.

    Raises ManifestError, or what `try_it` does, that names the repair.
    """
    folder = where.folder
    labels = Labels.parse(wanted.labels, wanted.labels_from)
    named = [] if folder is None or not folder.is_dir() else [folder]
    zoo = scan([*where.folders, *named])
    family = _family(zoo, labels, wanted, replace)
    replaced = _replaced(zoo if where.is_read else scan(named), family, wanted.name, folder, replace)
    target = replaced.directory if replaced is not None else folder or where.default
    if target.resolve() == STARTER.resolve():
        raise ManifestError(f"{target}: holds the family that ships with jetsel: name another folder with --folder")
    found = classifier_of(read_model(onnx), onnx.name, wanted.input_px, wanted.output)
    theirs = onnx.read_bytes()
    content = theirs if found.answers_logits else with_output(found.model, found.logits, LOGITS)
    sha256 = hashlib.sha256(content).hexdigest()
    source = wanted.source
    if content is not theirs:
        before = hashlib.sha256(theirs).hexdigest()
        source += f"; the tensor {found.logits} of that file (sha256 {before}) was made the output {LOGITS}"
    with working_folder(target) as work:
        copy = work / "model.onnx"
        copy.write_bytes(content)
        weights = Weights(wanted.name, copy, sha256, found.height_px, found.width_px, len(labels.names))
        seen = try_it(weights, found.before_softmax)
        manifest = _manifest(wanted, family, labels, found, seen, sha256, source)
        return Added(Model(manifest, put(work, copy, wanted.labels, manifest, replaced)), len(labels.names))


def _manifest(
    wanted: ModelDescription, family: str, labels: Labels, found: Classifier, seen: TrialRun, sha256: str, source: str
) -> Manifest:
    return manifest_of(
        {
            "name": wanted.name,
            "version": wanted.version,
            "family": family,
            "file": f"{family}.{wanted.weights or wanted.name}.{sha256[:12]}.onnx",
            "sha256": sha256,
            "labels": f"{family}.{labels.sha256[:12]}.tsv",
            "input": {"width_px": found.width_px, "height_px": found.height_px, **wanted.spec},
            "outputs": [LOGITS, *([EMBEDDING] if seen.embedding_width is not None else [])],
            "embedding_width": seen.embedding_width,
            "latency_ms": seen.latency_ms,
            "parameters": parameters(found.model),
            "source": source,
            "notice": wanted.notice,
            "tensors_sha256": wanted.tensors_sha256,
            "recipe": wanted.recipe,
            "licence": wanted.licence,
            "derived_from": wanted.derived_from,
        }
    )


def _family(zoo: Zoo, labels: Labels, wanted: ModelDescription, replace: bool) -> str:
    """Return the family that these labels are, or found one; raises ManifestError if two would contradict."""
    known = next((name for name, family in zoo.families.items() if family.labels.sha256 == labels.sha256), None)
    if known is not None:
        if wanted.family not in (None, known):
            raise ManifestError(
                f"--family {wanted.family}: these labels belong to family {known} already: omit --family"
            )
        return known
    name = wanted.family or wanted.likely_family
    if name in zoo.families:
        others = [model.manifest.name for model in zoo.families[name].models]
        if not (replace and others == [wanted.name]):
            raise ManifestError(
                f"family {name} ({', '.join(others)}) has other labels than {wanted.labels_from}: models of one family "
                "share them; for a family of its own, use --family NAME"
            )
    return name


def _replaced(zoo: Zoo, family: str, name: str, folder: Path | None, replace: bool) -> Model | None:
    models = zoo.families[family].models if family in zoo.families else ()
    there = next((model for model in models if model.manifest.name == name), None)
    if there is None:
        return None
    if folder is not None and folder.resolve() != there.directory.resolve():
        raise ManifestError(
            f"--folder {folder}: the daemon reads {name} of family {family} from {there.directory} too: leave --folder "
            f"out, or first run: jetsel models remove {name} --family {family}"
        )
    if not replace:
        raise ManifestError(
            f"family {family} has a model {name} in {there.directory}: choose another with --name, or use --replace"
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
    return msgspec.structs.replace(
        parent,
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
    )


@dataclass(frozen=True)
class NewFamily:
    """The owner's family: its name, its labels file's bytes, and what the weights of its heads came from."""

    name: str
    labels: bytes
    source: str


def check_name(zoo: Zoo, family: NewFamily) -> dict[str, Model]:
    """Return the models of this family that are there already, by name; raises ManifestError if it is another's."""
    labels = Labels.parse(family.labels, Path(family.name))
    known = zoo.families.get(family.name)
    if known is not None and known.labels.sha256 != labels.sha256:
        raise ManifestError(f"family {family.name} is there, with other classes: choose another name with --family")
    same = next((one.name for one in zoo.families.values() if one.labels.sha256 == labels.sha256), family.name)
    if same != family.name:
        raise ManifestError(
            f"family {same} has the very same classes: use --family {same}, or remove that family first"
        )
    return {} if known is None else {model.manifest.name: model for model in known.models}


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Put a headed model into a folder, or in the place of `old`; raises ManifestError.

    head: the content of its file. classes: of the backbone itself. The backbone's file is not copied if the folder
    holds it already.
    """
    labels = hashlib.sha256(family.labels).hexdigest()
    digest = hashlib.sha256(head).hexdigest()
    before = backbone.manifest
    file = f"{family.name}.{before.name}.{digest[:12]}.npz"
    manifest = msgspec.structs.replace(
        before,
        family=family.name,
        labels=f"{family.name}.{labels[:12]}.tsv",
        head=Head(file=file, sha256=digest, backbone_classes=classes),
        source=f"{family.source}, on {before.source}",
    )
    with working_folder(folder if old is None else old.directory) as work:
        copy = work / "model.onnx"
        shutil.copyfile(backbone.path, copy)
        return Model(manifest, put(work, copy, family.labels, manifest, old, {file: head}))
