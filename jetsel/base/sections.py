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
_BRACKETS = re.compile(r"\[.*?\]")  # list index in a path
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")


@dataclass(frozen=True)
class Sections(Generic[S]):
    """The sections of a file that one reader decodes.

    kind: a struct whose fields are the sections. examples: `section.key` -> a line of TOML. removed: settings of
    earlier versions -> what to do instead.
    """

    kind: type[S]
    examples: Mapping[str, str]
    removed: Mapping[str, str] = field(default_factory=dict)


def default_examples(sections: Struct) -> dict[str, str]:
    """Return an example of each key: its default value. Of a list of tables the first is used."""
    plain: dict[str, Any] = msgspec.to_builtins(sections)
    return {
        f"{section}.{key}": f"{key} = {msgspec.json.encode(value).decode()}"  # valid TOML, too
        for section, values in plain.items()
        for key, value in (values[0] if isinstance(values, list) else values).items()
    }


def parse_toml(text: str) -> dict[str, Any]:
    """Return the file's values, not decoded yet. Raises ConfigError."""
    try:
        plain: dict[str, Any] = msgspec.toml.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(harmless(f"not TOML: {error}; example: {_ANY_EXAMPLE}")) from None
    return plain


def decode(plain: Mapping[str, Any], sections: Sections[S], others: Collection[str] = ()) -> S:
    """Return the sections' values. Raises ConfigError. others: names of sections that other readers decode."""
    try:
        return msgspec.convert(plain, sections.kind)
    except msgspec.ValidationError as error:
        raise ConfigError(harmless(_explain_error(str(error), sections, others))) from None


def settings_in_effect(sections: Struct) -> dict[str, Any]:
    """Return the sections as plain values for printing, without settings that are None."""
    plain: dict[str, Any] = msgspec.to_builtins(sections)
    return {
        section: [_without_none(one) for one in values] if isinstance(values, list) else _without_none(values)
        for section, values in plain.items()
    }


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _explain_error(message: str, sections: Sections[Any], others: Collection[str]) -> str:
    where = _PATH.search(message)
    path = where["path"] if where else ""
    what = _PATH.sub("", message)
    unknown = _UNKNOWN.search(message)
    if unknown:
        key = f"{path}.{unknown['field']}" if path else unknown["field"]
        removed = sections.removed.get(_BRACKETS.sub("", key))
        if removed is not None:
            return f"{key}: this setting was removed: {removed}"
        names = _known_keys(path, sections) if path else [*sections.kind.__struct_fields__, *others]
        near = next(iter(difflib.get_close_matches(unknown["field"], names, 1)), None)
        meant, example = (f" (did you mean {near}?)", f"{path}.{near}") if near else ("", path)
        listed = ", ".join(names)
        return f"{key}: there is no such key{meant}; known here: {listed}; example: {_example_line(example, sections)}"
    if "pattern" in what or "regex" in what:
        what = "this value has the wrong form"
    return f"{path or 'jetsel.toml'}: {what[0].lower() + what[1:]}; example: {_example_line(path, sections)}"


def _known_keys(path: str, sections: Sections[Any]) -> list[str]:
    path = _BRACKETS.sub("", path)
    return sorted(key.removeprefix(f"{path}.") for key in sections.examples if key.startswith(f"{path}."))


def _example_line(path: str, sections: Sections[Any]) -> str:
    path = _BRACKETS.sub("", path)
    examples = sections.examples
    if path in examples:
        return examples[path]
    within = [example for key, example in examples.items() if path and key.startswith(path.split(".")[0])]
    return within[0] if within else _ANY_EXAMPLE
