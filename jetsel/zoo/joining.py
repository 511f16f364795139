"""Which family new models belong to. A family is a name with its list of classes; two families may have the same."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import ManifestError
from jetsel.base.names import RULE, exact
from jetsel.zoo.labels import Labels
from jetsel.zoo.store import Family, Zoo


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
    known = zoo.families.get(name)
    if known is None:
        told = () if new.family else (f"family {name} is new; {_same(one, names, are_heads)}" for one in fitting)
        return NewFamily(name, new.labels, notes=tuple(told))
    if known in fitting and new.family:
        return NewFamily(name, labels_of(known))
    overwrites = replace and (new.family is not None or new.origin in _origins(known))
    if overwrites and not are_heads and _names(known) == set(names):
        return NewFamily(name, new.labels)
    repair = "for a family of its own, choose another name with --family"
    if known in fitting:
        raise ManifestError(f"{_same(known, names, are_heads)}; {repair}")
    if known in alike:
        why = f"has the classes of {new.labels_from} in another order, and the outputs of a model cannot be reordered"
    else:
        apart = sorted(shown for _, shown in set(_classes(known.labels)) ^ set(classes))[:3]
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
