"""The status of a daemon of another version: it has all objects of ours, and none of their optional fields."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec

from jetsel.wire import StatusReply


def structs_of(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield every kind of object that an object of this type holds, itself first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        for field in msgspec.structs.fields(kind):
            yield from structs_of(field.type)
    for inner in get_args(kind):
        yield from structs_of(inner)


def hollow() -> StatusReply:
    """Return a status in which each list has an object and each object no field that it could be without."""
    return msgspec.convert({"type": "status", "v": 1, "id": "a", "state": "ready", **_filled(StatusReply)}, StatusReply)


def _filled(kind: type[msgspec.Struct]) -> dict[str, Any]:
    found = {field.name: _value(field.type) for field in msgspec.structs.fields(kind)}
    return {name: value for name, value in found.items() if value is not None}


def _value(kind: Any) -> Any:
    """Return what holds an object, or None if nothing there can."""
    if get_origin(kind) is dict:
        return None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _filled(kind)
    held = next((value for inner in get_args(kind) if (value := _value(inner)) is not None), None)
    return [held] if held is not None and get_origin(kind) is list else held
