"""Adds heads on backbones that are installed: which family they join, which models they replace, and their files."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace as with_
from pathlib import Path

import msgspec

from jetsel.base.errors import ManifestError, did_you_mean
from jetsel.base.names import path_text, plain_name
from jetsel.zoo.manifest import ManifestHead, manifest_of
from jetsel.zoo.placing import FamilyRequest, NewFamily, choose_family, labels_of, put, working_folder
from jetsel.zoo.store import Family, Model, Zoo


def family_of_heads(
    zoo: Zoo, backbone: Family, name: str | None, photos: Path, labels: bytes, *, replace: bool
) -> tuple[NewFamily, dict[str, Model]]:
    """Return the family of new heads for a folder of images, and the models that the heads replace, by name.

    name: chosen by the owner, or None. labels: of the folder's classes; the returned family keeps an existing order.
    Raises ManifestError if the heads cannot be added, so that nothing is trained in vain.
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
    """Return backbones named as the new models, the family of their heads, and the models that these replace by name.

    The heads are for another kind of images in family `name`, whose labels stay. kind: ends the new names. base: the
    model to build on, None for one head on each backbone. Raises ManifestError if the heads cannot be added.
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
        for model in reversed(family.models)  # reversed: the first of several heads on one backbone counts
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
    """Return a model's backbone under another name."""
    before = base.manifest
    source = f"the backbone of {before.name} ({before.source})"
    return with_(base, manifest=manifest_of(msgspec.to_builtins(before), name=name, source=source, derived_from=None))


def add_head(backbone: Model, head: bytes, classes: int, family: NewFamily, folder: Path, old: Model | None) -> Model:
    """Add a model made of a backbone and a head to a folder, or replace `old`; raises ManifestError.

    head: the content of its file. classes: number of the backbone's own classes. The backbone's file is copied unless
    the folder holds it already.
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
