"""Add one model to a folder: settle what was left out, try the model, and only then put it there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jetsel.cli.models.trial import Trial, tried
from jetsel.config import Config
from jetsel.daemon.snapshot import default_family
from jetsel.errors import ConfigError, ManifestError
from jetsel.weights import Weights
from jetsel.zoo import STARTER, Labels, Manifest, Model, Zoo, model_folders, scan
from jetsel.zoo.classifier import EMBEDDING, LOGITS, Classifier, classifier_in
from jetsel.zoo.folders import own_folder
from jetsel.zoo.manifest import manifest_of
from jetsel.zoo.placing import copy_weights, put, workplace
from jetsel.zoo.store import check_whole


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is known of a model beside its file; None is found out.

    family: the one wanted; None for that of the labels, or else `likely_family`. spec: of InputSpec, less the size.
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
    multiply_accumulates: int | None = None


@dataclass(frozen=True)
class Added:
    """The model as it was added, where, what was measured, and what the owner should know."""

    manifest: Manifest
    path: Path
    classes: int
    latency_ms: float
    notes: tuple[str, ...]


def add_model(onnx: Path, wanted: Wanted, values: Config, folder: Path | None, *, replace: bool) -> Added:
    """Add the model in the file `onnx`, or change nothing.

    Raises ManifestError, EngineFailedError or ConfigError that names the repair.
    """
    folders = model_folders(values.models)
    labels = Labels.parse(wanted.labels, wanted.labels_from)
    zoo = scan([*folders, *([folder] if folder is not None and folder.is_dir() else [])])
    family = _family(zoo, labels, wanted, replace)
    replaced = _replaced(zoo, family, wanted.name, folder, replace)
    target = replaced.directory if replaced is not None else folder or _first_writable(values)
    if target.resolve() == STARTER.resolve():
        raise ManifestError(f"{target}: holds the family that ships with jetsel: name another folder with --folder")
    check_whole(onnx)
    found = classifier_in(onnx, onnx.name, wanted.input_px, wanted.output)
    with workplace(target) as aside:
        copy = aside / "model.onnx"
        theirs, ours = copy_weights(onnx, copy, found.suffix)
        weights = Weights(wanted.name, copy, ours, found.height_px, found.width_px, len(labels.names))
        trial = tried(weights, found, wanted.multiply_accumulates, values.models.threads)
        manifest = _manifest(wanted, family, labels, found, trial, (theirs, ours))
        path = put(aside, copy, wanted.labels, manifest, replaced)
    return Added(manifest, path, len(labels.names), trial.latency_ms, tuple(_notes(values, target, manifest)))


def _manifest(
    wanted: Wanted, family: str, labels: Labels, found: Classifier, trial: Trial, sha256: tuple[str, str]
) -> Manifest:
    """Put the manifest together. sha256: of the file as the owner gave it, and as it is kept."""
    theirs, ours = sha256
    source = wanted.source
    if found.suffix:
        source += f"; of that file, sha256 {theirs}, the tensor {found.logits} was made the output {LOGITS}"
    return manifest_of(
        {
            "name": wanted.name,
            "version": wanted.version,
            "family": family,
            "file": f"{family}.{wanted.name}.{ours[:12]}.onnx",
            "sha256": ours,
            "labels": f"{family}.{labels.sha256[:12]}.tsv",
            "input": {"width_px": found.width_px, "height_px": found.height_px, **wanted.spec},
            "outputs": [LOGITS, *([EMBEDDING] if trial.embedding_width is not None else [])],
            "embedding_width": trial.embedding_width,
            "multiply_accumulates": trial.multiply_accumulates,
            "parameters": found.graph.parameters,
            "source": source,
            "notice": wanted.notice,
        }
    )


def _family(zoo: Zoo, labels: Labels, wanted: Wanted, replace: bool) -> str:
    """Return the family that these labels are, or found one; raises ManifestError where two would contradict."""
    known = next((name for name, family in zoo.families.items() if family.labels.sha256 == labels.sha256), None)
    if known is not None:
        if wanted.family not in (None, known):
            raise ManifestError(f"--family {wanted.family}: the same labels are family {known} already: leave it out")
        return known
    name = wanted.family or wanted.likely_family
    if name in zoo.families:
        others = [model.manifest.name for model in zoo.families[name].models]
        if not (replace and others == [wanted.name]):
            raise ManifestError(
                f"family {name} ({', '.join(others)}) has other labels than {wanted.labels_from}: models of one family "
                "share them; for a family of its own, say --family NAME"
            )
    return name


def _replaced(zoo: Zoo, family: str, name: str, folder: Path | None, replace: bool) -> Model | None:
    models = zoo.families[family].models if family in zoo.families else ()
    there = next((model for model in models if model.manifest.name == name), None)
    if there is None:
        return None
    if not replace:
        raise ManifestError(
            f"family {family} has a model {name} in {there.directory}: choose another with --name, or say --replace"
        )
    if folder is not None and folder.resolve() != there.directory.resolve():
        raise ManifestError(f"--folder {folder}: the {name} to replace is in {there.directory}: leave --folder out")
    return there


def _first_writable(values: Config) -> Path:
    """Return the configuration's first folder that this user may write to, or the owner's own."""
    given = [Path(path) for path in values.models.paths]
    return next((path for path in given if path.is_dir() and os.access(path, os.W_OK | os.X_OK)), own_folder())


def _notes(values: Config, folder: Path, manifest: Manifest) -> Sequence[str]:
    """Say what keeps a daemon of this configuration from serving the model."""
    folders = model_folders(values.models)
    if folder.resolve() not in [known.resolve() for known in folders]:
        paths = ", ".join(f'"{path}"' for path in [*values.models.paths, folder.resolve()])
        return [f"the daemon does not read {folder}: under [models] in jetsel.toml, write paths = [{paths}]"]
    notes = []
    only = values.models.only
    if only and manifest.name not in only:
        names = ", ".join(f'"{name}"' for name in [*only, manifest.name])
        notes.append(f"[models] only leaves it out: write only = [{names}]")
    zoo = scan(folders)
    try:
        default_family(values, list(zoo.families))
    except ConfigError as error:
        notes.append(
            f"a daemon will not start with it: {error}; write, for instance, default_family = "
            f'"{manifest.family}" under [models] in jetsel.toml'
        )
    notes.extend(f"left out: {broken.path}: {broken.reason}" for broken in zoo.broken if broken.path.parent == folder)
    return notes
