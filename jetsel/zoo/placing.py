"""Choose the family of new models, put one into a folder, whole or not at all, and take one out.

A daemon may be reading the folder meanwhile.

A manifest is what makes a model: see jetsel.base.versions, whose record it is.
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
    """What is known of the family of new models.

    family: the one that the owner names, None to choose. likely_family: the name of a new one, None if nothing gives
    it. labels: the content of the labels file; labels_from: its name in messages. origin: see Manifest.
    """

    family: str | None
    likely_family: str | None
    labels: bytes
    labels_from: Path
    origin: str | None = None


@dataclass(frozen=True)
class NewFamily:
    """The family of new models. labels: the content of its file. source, origin: of heads. notes: for the owner."""

    name: str
    labels: bytes
    source: str = ""
    origin: str | None = None
    notes: tuple[str, ...] = ()


def choose_family(
    zoo: Zoo, new: FamilyRequest, names: Collection[str], *, are_heads: bool = False, replace: bool
) -> NewFamily:
    """Return the family that the owner names, the only or the likely one with these classes and origin, or a new one.

    names: of the models. are_heads: whether they learn the family's order of the classes. Raises ManifestError, which
    names the repair, if the family has other classes, or if the owner must choose.
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
    """Say that a family has the same classes, and how to join it, if that replaces none of its models."""
    clash = not _names(family).isdisjoint(names)
    how = f": to answer in one cascade with it, use --family {family.name}{' --name NAME' * clash}"
    return f"family {family.name} has the same classes, perhaps for another task{'' if clash and are_heads else how}"


def _classes(labels: Labels) -> list[tuple[str, str]]:
    return [(exact(wnid), exact(name)) for wnid, name in zip(labels.wnids, labels.names, strict=True)]


def labels_of(family: Family) -> bytes:
    """Return the content of the labels file of a family."""
    first = family.models[0]
    return (first.directory / first.manifest.labels).read_bytes()


def _origins(family: Family) -> set[str | None]:
    return {origin for model in family.models for origin in (model.manifest.origin, model.manifest.recipe)}


def _names(family: Family) -> set[str]:
    return {model.manifest.name for model in family.models}


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder on the same disk to prepare a model in, for as long as a `with` lasts.

    `folder` is made if it is not there. One command at a time has it; others wait. Raises ManifestError if this
    user may not write there.
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
    """Bring weights prepared in a working folder into its folder, with labels and manifest; return the manifest's path.

    manifest: the names of its files are those that they get; they hold a part of the hash, so that a file that stands
    there under its name is the very same and stays. replaced: the model of that folder in whose place this one comes.
    others: the content of each of `manifest.others`, by name. Raises ManifestError if a manifest of this name stands
    there, OSError; then nothing has changed.
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
    """Change what a model's manifest says, at once; its files stay. Raises ManifestError; then nothing has changed."""
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
    """Remove a model's manifest, and then its other files unless another manifest of the folder names them.

    Raises ManifestError if this user may not; then nothing has changed.
    """
    with working_folder(model.directory) as work:
        withdraw(work, model.manifest_path.name, model.manifest.files)


def _is_same(new: Path, old: Path) -> bool:
    return old.is_file() and sha256_of(new) == sha256_of(old)


def _is_named(folder: Path, name: str) -> bool:
    """Whether a manifest of the folder names this file; also if one cannot be read, since it may name any."""
    for path in folder.glob("*.json"):
        try:
            plain = msgspec.json.decode(read_bounded(path, MAX_BYTES))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True
        if isinstance(plain, dict) and name in _texts(plain):
            return True
    return False


def _texts(plain: dict[str, Any]) -> list[Any]:
    """All that a manifest says, one level deep: whichever key a file is named under, it is found."""
    inner = [value for value in plain.values() if isinstance(value, dict)]
    return [value for part in (plain, *inner) for value in part.values()]
