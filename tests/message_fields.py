"""The fields of a message, and their types, as the documents write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import msgspec

_OF_EVERY_REPLY = frozenset({"v", "id"})
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", bytes: "string"}


def fields(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    """Yield each field by its path, objects before what they hold; an object that several fields hold, once."""
    yield from _fields(kind, prefix, set())


def _fields(
    kind: type[msgspec.Struct], prefix: str, seen: set[type[msgspec.Struct]]
) -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    for field in msgspec.structs.fields(kind):
        if not prefix and field.name in _OF_EVERY_REPLY:
            continue
        yield prefix + field.name, field
        held = _struct_in(field.type)
        if held is not None and held not in seen:
            seen.add(held)
            yield from _fields(held, f"{prefix}{field.name}{'[]' * type_name(field.type).startswith('list')}.", seen)


def _struct_in(found: Any) -> type[msgspec.Struct] | None:
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        return found
    return next((held for each in get_args(found) if (held := _struct_in(each)) is not None), None)


def type_name(found: Any) -> str:
    if get_origin(found) is Annotated:
        return type_name(get_args(found)[0])
    known = [each for each in get_args(found) if each is not type(None)]
    if len(known) < len(get_args(found)):
        return type_name(known[0])
    if get_origin(found) is list:
        return f"list of {_NAMES[known[0]]}s" if known[0] in _NAMES else "list"
    return _NAMES.get(found, "object")
