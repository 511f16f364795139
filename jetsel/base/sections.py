"""Decodes sections of a TOML file to frozen values; errors give the key, the problem and an example."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from jetsel.base.errors import ConfigError
from jetsel.base.events import harmless

S = TypeVar("S", bound=Struct)

_ANY_EXAMPLE = "[server] then a line queue_requests = 128"
_BRACKETS = re.compile(r"\[.*?\]")  # list index in msgspec's path of a value
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")


@dataclass(frozen=True)
class Sections(Generic[S]):
    """The sections of jetsel.toml that one part of jetsel decodes; add-ons have sections of their own.

    kind: a struct with a field for each section. examples: `section.key` -> a line of TOML that sets the key, for
    errors. removed: `section.key` of a setting of an earlier version -> what to do instead.
    """

    kind: type[S]
    examples: Mapping[str, str]
    removed: Mapping[str, str] = field(default_factory=dict)


def default_examples(sections: Struct) -> dict[str, str]:
    """Return `section.key` -> a TOML line that sets the key to its value in `sections`, such as rate_hz = 20.0.

    If a section is a list of tables, its first table gives the examples.
    """
    values_by_section: dict[str, Any] = msgspec.to_builtins(sections)
    return {
        f"{section}.{key}": f"{key} = {msgspec.json.encode(value).decode()}"  # valid TOML, too
        for section, values in values_by_section.items()
        for key, value in (values[0] if isinstance(values, list) else values).items()
    }


def parse_toml(text: str) -> dict[str, Any]:
    """Return a TOML file's values as dicts, lists, texts and numbers. Raises ConfigError if it is not TOML."""
    try:
        values: dict[str, Any] = msgspec.toml.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(harmless(f"not TOML: {error}; example: {_ANY_EXAMPLE}")) from None
    return values


def decode(values: Mapping[str, Any], sections: Sections[S], others: Collection[str] = ()) -> S:
    """Convert values from `parse_toml` to a struct of type `sections.kind`.

    others: names of sections that add-ons decode, which the error for an unknown section lists too. Raises ConfigError
    with the key, the problem and an example.
    """
    try:
        return msgspec.convert(values, sections.kind)
    except msgspec.ValidationError as error:
        raise ConfigError(harmless(_explain_error(str(error), sections, others))) from None


def settings_in_effect(sections: Struct) -> dict[str, Any]:
    """Return section -> key -> value of the settings in use, for printing, without settings that are None."""
    values_by_section: dict[str, Any] = msgspec.to_builtins(sections)
    return {
        section: [_without_none(table) for table in values] if isinstance(values, list) else _without_none(values)
        for section, values in values_by_section.items()
    }


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _explain_error(message: str, sections: Sections[Any], others: Collection[str]) -> str:
    """Return msgspec's error, which ends in the place as ` - at `$.server.workers``, in words for the owner."""
    path_match = _PATH.search(message)
    path = path_match["path"] if path_match else ""
    problem = _PATH.sub("", message)
    unknown_field = _UNKNOWN.search(message)
    if unknown_field:
        key = f"{path}.{unknown_field['field']}" if path else unknown_field["field"]
        removed = sections.removed.get(_BRACKETS.sub("", key))
        if removed is not None:
            return f"{key}: this setting was removed: {removed}"
        names = _known_keys(path, sections) if path else [*sections.kind.__struct_fields__, *others]
        similar = next(iter(difflib.get_close_matches(unknown_field["field"], names, 1)), None)
        suggestion, example = (f" (did you mean {similar}?)", f"{path}.{similar}") if similar else ("", path)
        problem = f"there is no such key{suggestion}; known here: {', '.join(names)}"
        return f"{key}: {problem}; example: {_example_line(example, sections)}"
    if "pattern" in problem or "regex" in problem:
        problem = "this value has the wrong form"
    return f"{path or 'jetsel.toml'}: {problem[0].lower() + problem[1:]}; example: {_example_line(path, sections)}"


def _known_keys(path: str, sections: Sections[Any]) -> list[str]:
    """Return the keys of a section that have an example, as all keys do."""
    path = _BRACKETS.sub("", path)
    return sorted(key.removeprefix(f"{path}.") for key in sections.examples if key.startswith(f"{path}."))


def _example_line(path: str, sections: Sections[Any]) -> str:
    """Return the example of a key, otherwise one of the same section, otherwise any. path: section or `section.key`."""
    path = _BRACKETS.sub("", path)
    examples = sections.examples
    if path in examples:
        return examples[path]
    same_section = [example for key, example in examples.items() if path and key.startswith(path.split(".")[0])]
    return same_section[0] if same_section else _ANY_EXAMPLE
