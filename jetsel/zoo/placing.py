"""Choose the family of new models or heads, and put, rewrite or remove models atomically, as a daemon may read them.

A model exists if its manifest does: the manifest is the record of jetsel.base.versions.
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
    """A request to choose the family of new models.

    family: chosen by the owner, or None. likely_family: name for a new family, None if there is none. labels_from: the
    file of the labels, for messages. origin: see Provenance.
    """

    family: str | None
    likely_family: str | None
    labels: Labels
    labels_from: Path
    origin: str | None = None


@dataclass(frozen=True)
class NewFamily:
    """The family of new models. source, origin: of heads. notes: for the owner."""

    name: str
    labels: Labels
    source: str = ""
    origin: str | None = None
    notes: tuple[str, ...] = ()


def choose_family(
    zoo: Zoo, new: FamilyRequest, names: Collection[str], *, are_heads: bool = False, replace: bool
) -> NewFamily:
    """Return the owner's family, an existing one with the same classes and origin, or a new one.

    names: of the new models. are_heads: heads can learn any order of the classes, so the order need not match. Raises
    ManifestError if the family has other classes, or if the owner must choose.
    """
    classes = _identifiers_and_names(new.labels)
    alike = [one for one in zoo.families.values() if set(_identifiers_and_names(one.labels)) == set(classes)]
    fitting = [one for one in alike if are_heads or _identifiers_and_names(one.labels) == classes]
    same = [one for one in fitting if new.origin is not None and new.origin in _origins(one)]
    joined = next((one for one in same if len(same) == 1 or one.name == new.likely_family), None)
    if new.family is None and joined is not None:
        note = f"family {joined.name} has models of the same origin: for a family of its own, use --family NAME"
        return NewFamily(joined.name, joined.labels, notes=(note,))
    name = new.family or new.likely_family
    if name is None:
        raise ManifestError(f"{new.labels_from}: its name gives none for a family: use --family NAME; {RULE}")
    family = zoo.families.get(name)
    if family is None:
        notes = () if new.family else (f"family {name} is new; {_join_note(one, names, are_heads)}" for one in fitting)
        return NewFamily(name, new.labels, notes=tuple(notes))
    if family in fitting and new.family:
        return NewFamily(name, family.labels)
    overwrites = replace and (new.family is not None or new.origin in _origins(family))
    if overwrites and not are_heads and set(family.by_name) == set(names):
        return NewFamily(name, new.labels)
    if family in fitting:
        why = _join_note(family, names, are_heads)
    elif family in alike:
        why = f"family {name} has the classes of {new.labels_from} in another order, which no model can change"
    else:
        apart = ", ".join(sorted(shown for _, shown in set(_identifiers_and_names(family.labels)) ^ set(classes))[:3])
        why = f"family {name} has other classes than {new.labels_from} (see {apart}) and keeps them until it is removed"
    raise ManifestError(f"{why}; for a family of its own, choose another name with --family")


def _join_note(family: Family, names: Collection[str], are_heads: bool) -> str:
    """Return a note that a family has the same classes, and how to join it without replacing its models."""
    clash = not set(family.by_name).isdisjoint(names)
    how = f": to answer in one cascade with it, use --family {family.name}{' --name NAME' * clash}"
    return f"family {family.name} has the same classes, perhaps for another task{'' if clash and are_heads else how}"


def _identifiers_and_names(labels: Labels) -> list[tuple[str, str]]:
    return [(exact(wnid), exact(name)) for wnid, name in zip(labels.wnids, labels.names, strict=True)]


def _origins(family: Family) -> set[str | None]:
    return {model.manifest.provenance.origin for model in family.models}


def family_of_heads(
    zoo: Zoo, backbone: Family, name: str | None, photos: Path, labels: Labels, *, replace: bool
) -> tuple[NewFamily, dict[str, Model]]:
    """Return the family of new heads for a folder of images, and the models that the heads replace, by name.

    name: chosen by the owner, or None. labels: of the folder's classes; the returned family keeps an existing order.
    Raises ManifestError if the heads cannot be added, so that nothing is trained in vain.
    """
    place, likely = path_text(photos.resolve()), plain_name(photos.resolve().name)
    request = FamilyRequest(family=name, likely_family=likely, labels=labels, labels_from=photos, origin=place)
    names = [model.manifest.name for model in backbone.models]
    family = choose_family(zoo, request, names, are_heads=True, replace=replace)
    models = zoo.models(family.name)
    origins = {one: model.manifest.provenance.origin or place for one, model in models.items()}
    there = {one: model for one, model in models.items() if one in names}
    if there and not replace:
        again = "; --replace trains them again" if place in (origins[one] for one in there) else ""
        raise ManifestError(
            f"family {family.name} has {', '.join(there)} already: for heads beside them, for another kind of images, "
            f"use --family {family.name} --name KIND; for a family of its own, choose another name with --family{again}"
        )
    adds = "" if there else f": this adds {len(names)} heads of the backbone {backbone.name}"
    notes = [
        f"family {family.name} has heads of {one} too{adds}, in one cascade with them; for another light or "
        "camera, use --name KIND"
        for one in sorted({*origins.values()} - {place})
    ]
    return with_(family, source=f"head for {Path(place).name}", origin=place, notes=(*family.notes, *notes)), there


def heads_beside(
    zoo: Zoo, name: str, kind: str, base: str | None, photos: Path, *, replace: bool
) -> tuple[Family, NewFamily, dict[str, Model]]:
    """Return backbones named as the new models, the family of their heads, and the models that these replace by name.

    The heads are for another kind of images in family `name`, whose labels stay. kind: ends the new names. base: the
    model to build on, None for one head on each backbone. Raises ManifestError if the heads cannot be added.
    """
    family, by_name = zoo.families.get(name), zoo.models(name)
    if family is None:
        near = did_you_mean(name, zoo.families)
        raise ManifestError(f"there is no family {name}{near}: train its first heads without --name")
    if base is not None and base not in by_name:
        near = did_you_mean(base, by_name)
        raise ManifestError(f"--backbone: family {name} has no model {base}{near}; it has {', '.join(by_name)}")
    able: dict[tuple[str, InputSpec], Model] = {}
    for model in family.models:
        if base in (None, model.manifest.name) and model.manifest.embedding_width is not None:
            able.setdefault((model.manifest.sha256, model.manifest.input), model)  # of several heads, the first
    if not able:
        raise ManifestError(f"{base or f'family {name}'}: gives no embedding, which a head is trained on")
    new = {f"{model.manifest.name}-{kind}": model for model in able.values()}
    there = {one: by_name[one] for one in new if one in by_name}
    strange = [one for one, model in there.items() if model.manifest.sha256 != new[one].manifest.sha256]
    if strange:
        raise ManifestError(
            f"family {name} has {', '.join(strange)} on other backbones, as of its first training: choose another "
            f"--name, such as {kind}2"
        )
    if there and not replace:
        raise ManifestError(
            f"family {name} has {', '.join(there)} already: choose another --name; --replace trains them again"
        )
    made = NewFamily(name, family.labels, source=f"head for {photos.resolve().name}")
    return with_(family, models=tuple(_renamed_backbone(model, one) for one, model in new.items())), made, there


def _renamed_backbone(base: Model, name: str) -> Model:
    """Return a model's backbone under another name."""
    before = base.manifest
    source = f"the backbone of {before.name} ({before.provenance.source})"
    provenance = structs.replace(before.provenance, source=source, derived_from=None)
    return with_(base, manifest=before.changed(name=name, provenance=provenance))


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """Give an empty working folder on the same disk for the duration of a `with` block; create `folder` if needed.

    One command at a time has a working folder; others wait. Raises ManifestError if this user may not write there.
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
    """Move weights from a working folder into its parent, with labels and manifest, and return the model.

    manifest: also names the files; names contain a part of the hash, so an existing file with equal content is kept.
    replaced: the model in the same folder to replace. others: content of each of `manifest.others`, by name. Raises
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
    there = [name for name in manifest.files if (folder / name).is_file()]
    same = [name for name in there if filecmp.cmp(work / name, folder / name, shallow=False)]
    new = [name for name in manifest.files if name not in same]
    publish(work, [*new, target.name], () if replaced is None else replaced.manifest.files)
    return Model(manifest, target)


def rewrite_manifest(model: Model, **changes: Any) -> Model:
    """Change a model's manifest atomically and return the model; raises ManifestError if it cannot be changed."""
    if model.directory.resolve() == STARTER.resolve():
        raise ManifestError(f"{model.manifest.name} ships with jetsel and cannot be changed: add a copy of it instead")
    if model.directory in planned_folders():
        raise ManifestError(f"{model.manifest.name} came with a fleet's plan: change it where it is published from")
    changed = Model(model.manifest.changed(**changes), model.manifest_path)
    with working_folder(model.directory) as work:
        _write_manifest(work / model.manifest_path.name, changed.manifest)
        publish(work, [model.manifest_path.name])
    return changed


def _write_manifest(path: Path, manifest: Manifest) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def remove_model(model: Model) -> None:
    """Remove a model's manifest, then its files unless another manifest in the folder names them.

    Raises ManifestError if this user may not write there; then nothing has changed.
    """
    with working_folder(model.directory) as work:
        withdraw(work, model.manifest_path.name, model.manifest.files)


def _is_named(folder: Path, name: str) -> bool:
    """Whether a manifest in the folder names this file. An unreadable manifest counts, since it may name any file."""
    try:
        manifests = [msgspec.json.decode(read_bounded(path, MAX_BYTES)) for path in folder.glob("*.json")]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return f'"{name}"'.encode() in msgspec.json.encode(manifests)
