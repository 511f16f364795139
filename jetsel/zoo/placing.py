"""Choose the family of new models, and add, rewrite or remove models atomically, as a daemon may read the folder.

A model exists if its manifest does: the manifest is the record of jetsel.base.versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from jetsel.base import files, versions
from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded, sha256_of
from jetsel.base.names import RULE, exact
from jetsel.base.versions import publish, withdraw
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import MAX_BYTES, Manifest, manifest_of
from jetsel.zoo.store import STARTER, Family, Model, Zoo, planned_folders


@dataclass(frozen=True, kw_only=True)
class FamilyRequest:
    """A request to choose the family of new models.

    family: chosen by the owner, or None. likely_family: name for a new family, None if there is none. labels: the
    content of the labels file. labels_from: its path, for messages. origin: see Manifest.
    """

    family: str | None
    likely_family: str | None
    labels: bytes
    labels_from: Path
    origin: str | None = None


@dataclass(frozen=True)
class NewFamily:
    """The family of new models. labels: content of the labels file. source, origin: of heads. notes: for the owner."""

    name: str
    labels: bytes
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
    classes = _classes(Labels.parse(new.labels, new.labels_from))
    alike = [one for one in zoo.families.values() if set(_classes(one.labels)) == set(classes)]
    fitting = [one for one in alike if are_heads or _classes(one.labels) == classes]
    same = [one for one in fitting if new.origin is not None and new.origin in _origins(one)]
    joined = next((one for one in same if len(same) == 1 or one.name == new.likely_family), None)
    if new.family is None and joined is not None:
        note = f"family {joined.name} has models of the same origin: for a family of its own, use --family NAME"
        return NewFamily(joined.name, labels_of(joined), notes=(note,))
    name = new.family or new.likely_family
    if name is None:
        raise ManifestError(f"{new.labels_from}: its name gives none for a family: use --family NAME; {RULE}")
    family = zoo.families.get(name)
    if family is None:
        notes = () if new.family else (f"family {name} is new; {_same(one, names, are_heads)}" for one in fitting)
        return NewFamily(name, new.labels, notes=tuple(notes))
    if family in fitting and new.family:
        return NewFamily(name, labels_of(family))
    overwrites = replace and (new.family is not None or new.origin in _origins(family))
    if overwrites and not are_heads and _names(family) == set(names):
        return NewFamily(name, new.labels)
    repair = "for a family of its own, choose another name with --family"
    if family in fitting:
        raise ManifestError(f"{_same(family, names, are_heads)}; {repair}")
    if family in alike:
        why = f"has the classes of {new.labels_from} in another order, and the outputs of a model cannot be reordered"
    else:
        apart = sorted(shown for _, shown in set(_classes(family.labels)) ^ set(classes))[:3]
        why = f"has other classes than {new.labels_from} (see {', '.join(apart)}) and keeps them until it is removed"
    raise ManifestError(f"family {name} {why}; {repair}")


def _same(family: Family, names: Collection[str], are_heads: bool) -> str:
    """Return a note that a family has the same classes, and how to join it without replacing its models."""
    clash = not _names(family).isdisjoint(names)
    how = f": to answer in one cascade with it, use --family {family.name}{' --name NAME' * clash}"
    return f"family {family.name} has the same classes, perhaps for another task{'' if clash and are_heads else how}"


def _classes(labels: Labels) -> list[tuple[str, str]]:
    return [(exact(wnid), exact(name)) for wnid, name in zip(labels.wnids, labels.names, strict=True)]


def labels_of(family: Family) -> bytes:
    """Return the content of a family's labels file."""
    first = family.models[0]
    return (first.directory / first.manifest.labels).read_bytes()


def _origins(family: Family) -> set[str | None]:
    return {origin for model in family.models for origin in (model.manifest.origin, model.manifest.recipe)}


def _names(family: Family) -> set[str]:
    return {model.manifest.name for model in family.models}


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


def put(
    work: Path,
    weights: Path,
    labels: bytes,
    manifest: Manifest,
    replaced: Model | None,
    others: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Move weights from a working folder into its parent, with labels and manifest; return the manifest's path.

    manifest: also names the files; names contain a part of the hash, so an existing file with equal content is kept.
    replaced: the model in the same folder to replace. others: content of each of `manifest.others`, by name. Raises
    ManifestError if the manifest exists already, or OSError; then nothing has changed.
    """
    folder = work.parent
    target = folder / f"{manifest.family}.{manifest.name}.json" if replaced is None else replaced.manifest_path
    if replaced is None and target.exists():
        raise ManifestError(f"{target}: already exists, see jetsel models list: choose another name, or delete it")
    weights.rename(work / manifest.file)
    (work / manifest.labels).write_bytes(labels)
    for name, content in others.items():
        (work / name).write_bytes(content)
    _write(work / target.name, manifest)
    new = [name for name in manifest.files if not _is_same(work / name, folder / name)]
    old = () if replaced is None else replaced.manifest.files
    publish(work, [*new, target.name], old)
    return target


def rewrite(model: Model, **changes: Any) -> Model:
    """Change a model's manifest atomically and return the model; raises ManifestError if it cannot be changed."""
    if model.directory.resolve() == STARTER.resolve():
        raise ManifestError(f"{model.manifest.name} ships with jetsel and cannot be changed: add a copy of it instead")
    if model.directory in planned_folders():
        raise ManifestError(
            f"{model.manifest.name} came with a fleet's plan: change it where its family is published from"
        )
    changed = Model(manifest_of(msgspec.to_builtins(model.manifest), **changes), model.manifest_path)
    with working_folder(model.directory) as work:
        _write(work / model.manifest_path.name, changed.manifest)
        publish(work, [model.manifest_path.name])
    return changed


def _write(path: Path, manifest: Manifest) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def take_out(model: Model) -> None:
    """Remove a model's manifest, then its files unless another manifest in the folder names them.

    Raises ManifestError if this user may not write there; then nothing has changed.
    """
    with working_folder(model.directory) as work:
        withdraw(work, model.manifest_path.name, model.manifest.files)


def _is_same(new: Path, old: Path) -> bool:
    return old.is_file() and sha256_of(new) == sha256_of(old)


def _is_named(folder: Path, name: str) -> bool:
    """Whether a manifest in the folder names this file. An unreadable manifest counts, since it may name any file."""
    for path in folder.glob("*.json"):
        try:
            plain = msgspec.json.decode(read_bounded(path, MAX_BYTES))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True
        if isinstance(plain, dict) and name in _texts(plain):
            return True
    return False


def _texts(plain: dict[str, Any]) -> list[Any]:
    """Return all values of a manifest and of its inner objects, among which every file name is."""
    inner = [value for value in plain.values() if isinstance(value, dict)]
    return [value for part in (plain, *inner) for value in part.values()]
