"""Choose the family of new models or heads, and add, change or remove models in one step, as a daemon may read them.

A family is a list of classes with models that answer it; a head is a trained last layer on another model, its
backbone. A model exists if its manifest does: the manifest is the record of jetsel.base.versions.
"""

from __future__ import annotations

import filecmp
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from jetsel.base import files, versions
from jetsel.base.errors import ManifestError, did_you_mean
from jetsel.base.files import read_bounded
from jetsel.base.names import RULE, exact, path_text, plain_name
from jetsel.base.versions import publish, withdraw
from jetsel.image import InputSpec
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import MAX_BYTES, Manifest
from jetsel.zoo.store import STARTER, Family, Model, Zoo, planned_folders


@dataclass(frozen=True, kw_only=True)
class FamilyRequest:
    """What decides the family of new models.

    family: name from the owner, or None. likely_family: name for a new family, None if nothing suggests one.
    labels_from: file of the labels, for messages. origin: folder or collection that the models come from, or None.
    """

    family: str | None
    likely_family: str | None
    labels: Labels
    labels_from: Path
    origin: str | None = None


@dataclass(frozen=True)
class NewFamily:
    """The family that new models join or found. source, origin: for the provenance of heads. notes: for the owner."""

    name: str
    labels: Labels
    source: str = ""
    origin: str | None = None
    notes: tuple[str, ...] = ()


def choose_family(
    zoo: Zoo, request: FamilyRequest, names: Collection[str], *, are_heads: bool = False, replace: bool
) -> NewFamily:
    """Return the owner's family, otherwise an existing one with the same classes and origin, otherwise a new one.

    names: of the new models. are_heads: True if the order of the classes may differ, as heads learn any. replace: True
    if the new models may take the place of all models of a family, whose classes may then change. Raises ManifestError
    if the family has other classes, or if the owner must choose.
    """
    classes = _class_pairs(request.labels)
    same_classes = [family for family in zoo.families.values() if set(_class_pairs(family.labels)) == set(classes)]
    usable = [family for family in same_classes if are_heads or _class_pairs(family.labels) == classes]
    related = [family for family in usable if request.origin is not None and request.origin in _origins(family)]
    joined = next((one for one in related if len(related) == 1 or one.name == request.likely_family), None)
    if request.family is None and joined is not None:
        note = f"family {joined.name} has models of the same origin: for a family of its own, use --family NAME"
        return NewFamily(joined.name, joined.labels, notes=(note,))
    name = request.family or request.likely_family
    if name is None:
        raise ManifestError(f"{request.labels_from}: its name gives none for a family: use --family NAME; {RULE}")
    family = zoo.families.get(name)
    if family is None:
        others = [] if request.family else usable
        notes = (f"family {name} is new; {_join_note(other, names, are_heads)}" for other in others)
        return NewFamily(name, request.labels, notes=tuple(notes))
    if family in usable and request.family:
        return NewFamily(name, family.labels)
    overwrites = replace and (request.family is not None or request.origin in _origins(family))
    if overwrites and not are_heads and set(family.by_name) == set(names):
        return NewFamily(name, request.labels)
    if family in usable:
        reason = _join_note(family, names, are_heads)
    elif family in same_classes:
        reason = f"family {name} has the classes of {request.labels_from} in another order, which no model can change"
    else:
        differences = sorted(class_name for _, class_name in set(_class_pairs(family.labels)) ^ set(classes))[:3]
        contrast = f"has other classes than {request.labels_from} (see {', '.join(differences)})"
        reason = f"family {name} {contrast} and keeps them until it is removed"
    raise ManifestError(f"{reason}; for a family of its own, choose another name with --family")


def _join_note(family: Family, names: Collection[str], are_heads: bool) -> str:
    """Return a note that a family has the same classes, and how the new models can join it beside its own."""
    clash = not set(family.by_name).isdisjoint(names)
    advice = f": to answer in one cascade with it, use --family {family.name}{' --name NAME' * clash}"
    return f"family {family.name} has the same classes, perhaps for another task{'' if clash and are_heads else advice}"


def _class_pairs(labels: Labels) -> list[tuple[str, str]]:
    """Return the identifier and name of each class in a form to compare, in the outputs' order."""
    return [(exact(wnid), exact(name)) for wnid, name in zip(labels.wnids, labels.names, strict=True)]


def _origins(family: Family) -> set[str | None]:
    return {model.manifest.provenance.origin for model in family.models}


def family_of_heads(
    zoo: Zoo, backbone: Family, name: str | None, images: Path, labels: Labels, *, replace: bool
) -> tuple[NewFamily, dict[str, Model]]:
    """Return the family of new heads, one on each model of `backbone`, and the models that they replace, by name.

    name: of the family, from the owner, or None. images: training folder. labels: of its classes; an existing family
    keeps its own order. Raises ManifestError if the heads could not be added, so that nothing is trained in vain.
    """
    origin, likely = path_text(images.resolve()), plain_name(images.resolve().name)
    request = FamilyRequest(family=name, likely_family=likely, labels=labels, labels_from=images, origin=origin)
    names = [model.manifest.name for model in backbone.models]
    family = choose_family(zoo, request, names, are_heads=True, replace=replace)
    models = zoo.models(family.name)
    origins = {model_name: model.manifest.provenance.origin or origin for model_name, model in models.items()}
    replaced = {model_name: model for model_name, model in models.items() if model_name in names}
    if replaced and not replace:
        hint = "; --replace trains them again" if origin in [origins[model_name] for model_name in replaced] else ""
        raise ManifestError(
            f"family {family.name} has {', '.join(replaced)} already: for heads beside them, for another kind of "
            f"images, use --family {family.name} --name KIND; for a family of its own, choose another name with "
            f"--family{hint}"
        )
    addition = "" if replaced else f": this adds {len(names)} heads of the backbone {backbone.name}"
    notes = [
        f"family {family.name} has heads of {other} too{addition}, in one cascade with them; for another light or "
        "camera, use --name KIND"
        for other in sorted({*origins.values()} - {origin})
    ]
    return with_(family, source=f"head for {Path(origin).name}", origin=origin, notes=(*family.notes, *notes)), replaced


def heads_beside(
    zoo: Zoo, name: str, suffix: str, base: str | None, images: Path, *, replace: bool
) -> tuple[Family, NewFamily, dict[str, Model]]:
    """Choose backbones and names for new heads of the family `name`, for another kind of images, such as night images.

    Return the backbones, as a family with the heads' names; the family of the heads; and the models that these replace,
    by name. suffix: ends the new names. base: model whose backbone to use, None for one head on each backbone. Raises
    ManifestError if the heads could not be added.
    """
    family, by_name = zoo.families.get(name), zoo.models(name)
    if family is None:
        suggestion = did_you_mean(name, zoo.families)
        raise ManifestError(f"there is no family {name}{suggestion}: train its first heads without --name")
    if base is not None and base not in by_name:
        suggestion = did_you_mean(base, by_name)
        raise ManifestError(f"--backbone: family {name} has no model {base}{suggestion}; it has {', '.join(by_name)}")
    backbones: dict[tuple[str, InputSpec], Model] = {}
    for model in family.models:
        if base in (None, model.manifest.name) and model.manifest.embedding_width is not None:
            backbones.setdefault((model.manifest.sha256, model.manifest.input), model)  # of several heads, the first
    if not backbones:
        raise ManifestError(f"{base or f'family {name}'}: gives no embedding, which a head is trained on")
    new = {f"{model.manifest.name}-{suffix}": model for model in backbones.values()}
    replaced = {new_name: by_name[new_name] for new_name in new if new_name in by_name}
    mismatched = [key for key, model in replaced.items() if model.manifest.sha256 != new[key].manifest.sha256]
    if mismatched:
        raise ManifestError(
            f"family {name} has {', '.join(mismatched)} on other backbones, as of its first training: choose another "
            f"--name, such as {suffix}2"
        )
    if replaced and not replace:
        raise ManifestError(
            f"family {name} has {', '.join(replaced)} already: choose another --name; --replace trains them again"
        )
    heads = NewFamily(name, family.labels, source=f"head for {images.resolve().name}")
    models = tuple(_renamed_backbone(model, new_name) for new_name, model in new.items())
    return with_(family, models=models), heads, replaced


def _renamed_backbone(base: Model, name: str) -> Model:
    """Return a model with another name, and the provenance of a backbone, for a head on it."""
    manifest = base.manifest
    source = f"the backbone of {manifest.name} ({manifest.provenance.source})"
    provenance = structs.replace(manifest.provenance, source=source, derived_from=None)
    return with_(base, manifest=manifest.changed(name=name, provenance=provenance))


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """Provide an empty folder inside `folder`, created if needed, during a `with` block, to prepare a model's files.

    One command at a time has it; others wait. Raises ManifestError if this user may not write there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with versions.working_folder(folder, partial(_is_named, folder)) as work:
            yield work
    except OSError as error:
        repair = files.repair_of(error, "name another folder with --folder")
        raise ManifestError(f"{folder}: {error.strerror or error}; nothing was changed there: {repair}") from error


def place_model(
    work: Path,
    weights: Path,
    labels: Labels,
    manifest: Manifest,
    replaced: Model | None = None,
    others: Mapping[str, bytes] | None = None,
) -> Model:
    """Add a model to the folder that holds the working folder `work`, in one step, and return it.

    weights: ONNX file in `work`, which is moved. manifest: also names the files; an existing file with equal content is
    kept. replaced: model of the folder to replace. others: content of each of `manifest.others`, by name. Raises
    ManifestError if the manifest exists already, or OSError; then nothing has changed.
    """
    folder = work.parent
    target = folder / f"{manifest.family}.{manifest.name}.json" if replaced is None else replaced.manifest_path
    if replaced is None and target.exists():
        raise ManifestError(f"{target}: already exists, see jetsel models list: choose another name, or delete it")
    weights.rename(work / manifest.file)
    for name, content in {manifest.labels: labels.content, **(others or {})}.items():
        (work / name).write_bytes(content)
    _write_manifest(work / target.name, manifest)
    existing = [name for name in manifest.files if (folder / name).is_file()]
    identical = [name for name in existing if filecmp.cmp(work / name, folder / name, shallow=False)]
    new_files = [name for name in manifest.files if name not in identical]
    publish(work, [*new_files, target.name], () if replaced is None else replaced.manifest.files)
    return Model(manifest, target)


def rewrite_manifest(model: Model, **changes: Any) -> Model:
    """Change fields of a model's manifest on disk, and return the model; raises ManifestError if it may not change."""
    if model.directory.resolve() == STARTER.resolve():
        raise ManifestError(f"{model.manifest.name} ships with jetsel and cannot be changed: add a copy of it instead")
    if model.directory in planned_folders():
        raise ManifestError(f"{model.manifest.name} came with a fleet's plan: change it where it is published from")
    changed_model = Model(model.manifest.changed(**changes), model.manifest_path)
    with working_folder(model.directory) as work:
        _write_manifest(work / model.manifest_path.name, changed_model.manifest)
        publish(work, [model.manifest_path.name])
    return changed_model


def _write_manifest(path: Path, manifest: Manifest) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def remove_model(model: Model) -> None:
    """Remove a model's manifest, then its files unless other manifests name them. Raises ManifestError."""
    with working_folder(model.directory) as work:
        withdraw(work, model.manifest_path.name, model.manifest.files)


def _is_named(folder: Path, name: str) -> bool:
    """Return whether a manifest in the folder names the file `name`; True if one is unreadable, as it may name it."""
    try:
        manifests = [msgspec.json.decode(read_bounded(path, MAX_BYTES)) for path in folder.glob("*.json")]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return f'"{name}"'.encode() in msgspec.json.encode(manifests)
