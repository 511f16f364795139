"""Print docs/status-fields.md: `python -m tests.status_fields`. Types come from jetsel/wire, meanings from the TSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec

from jetsel.wire import StatusReply

MEANINGS = Path(__file__).with_name("status_fields.tsv")
HEAD = """# Fields of the reply to `status`

After reading this page you can find any figure of the daemon in the reply to [`status`](protocol.md#status). For
example, how many answers each model gave:

```bash
jetsel status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["answers"]["by_model"])'
```

Any field but `state` may be null or missing: unknown, if its row says nothing else. Counts are totals since the start;
`instance` changes when they begin anew. Energies are above idle power, and estimates but for those in `power.judged`.

| field | type | meaning |
| --- | --- | --- |"""
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
            yield from _fields(held, f"{prefix}{field.name}{'[]' * _type_name(field.type).startswith('list')}.", seen)


def _struct_in(found: Any) -> type[msgspec.Struct] | None:
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        return found
    return next((held for each in get_args(found) if (held := _struct_in(each)) is not None), None)


def _type_name(found: Any) -> str:
    if get_origin(found) is Annotated:
        return _type_name(get_args(found)[0])
    known = [each for each in get_args(found) if each is not type(None)]
    if len(known) < len(get_args(found)):
        return _type_name(known[0])
    if get_origin(found) is list:
        return f"list of {_NAMES[known[0]]}s" if known[0] in _NAMES else "list"
    return _NAMES.get(found, "object")


def page() -> str:
    """Return docs/status-fields.md; the meaning `=` joins a field to the row above. Raises KeyError if one has none."""
    meanings = dict(line.split("\t") for line in MEANINGS.read_text(encoding="utf-8").splitlines())
    rows: list[tuple[str, str, str]] = []
    for path, field in fields(StatusReply):
        meaning, name = meanings.pop(path), _type_name(field.type)
        if meaning == "=":
            above, shared, meaning = rows.pop()
            if shared != name:
                raise ValueError(
                    f"{MEANINGS}: {path} is {name} and the field above {shared}: give it a meaning of its own"
                )
            path = f"{above}`, `{path.rpartition('.')[2]}"
        rows.append((path, name, meaning))
    if meanings:
        raise KeyError(f"{MEANINGS}: there is no field {', '.join(meanings)}")
    return "\n".join([HEAD, *(f"| `{path}` | {name} | {meaning} |" for path, name, meaning in rows)]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
