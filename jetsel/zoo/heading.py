"""Add a model that shares a backbone's file and has a last layer of its own."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jetsel.base.errors import ManifestError
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import Head
from jetsel.zoo.placing import put, working_folder
from jetsel.zoo.store import Model, Zoo


@dataclass(frozen=True)
class NewFamily:
    """The owner's family: its name, its labels file's bytes, and what the weights of its heads came from."""

    name: str
    labels: bytes
    source: str


def check_name(zoo: Zoo, family: NewFamily) -> dict[str, Model]:
    """Return the models of this family that are there already, by name; raises ManifestError where it is another's."""
    labels = Labels.parse(family.labels, Path(family.name))
    known = zoo.families.get(family.name)
    if known is not None and known.labels.sha256 != labels.sha256:
        raise ManifestError(f"family {family.name} is there, with other classes: choose another name with --family")
    same = next((one.name for one in zoo.families.values() if one.labels.sha256 == labels.sha256), family.name)
    if same != family.name:
        raise ManifestError(f"family {same} has the very same classes: leave --family out, or say --family {same}")
    return {} if known is None else {model.manifest.name: model for model in known.models}


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Put a headed model into a folder, or in the place of `old`; raises ManifestError.

    head: the content of its file. classes: of the backbone itself. The backbone's file is not copied where the folder
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
