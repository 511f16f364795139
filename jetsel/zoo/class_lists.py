"""Reads the names of classes out of the lists that people have: a line for each, numbered or not, JSON, or Python."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any

from jetsel.base.errors import ManifestError

_QUOTED = re.compile(r"""(["'])(.*)\1,?""")
_IDENTIFIED = re.compile(r"(n\d{8})[\s,:]+(\S.*)")  # by WordNet
_NUMBERED = (
    re.compile(r"(?P<number>[0-9]{1,7})(?P<mark>\s*[,;:.)=\t]\s*|\s+(?:-\s+)?)(?P<name>\S.*)"),
    re.compile(r"(?P<name>.*\S)(?P<mark>\s*[,;:=\t]\s*|\s+)(?P<number>[0-9]{1,7})"),
)
_UNCLEAR = (
    "its numbers do not count the classes from 0 or 1, each once: correct them, as in 0: cat, or put names that have "
    "numbers in quotes"
)
_INSIDE = ("id2label", "names", "classes", "class_to_idx")  # what an object may call its list of classes


def listed(text: str, source: str) -> list[str]:
    """Return the classes of a text in order, each a name, or an identifier, a tab and names.

    Raises ManifestError that calls the text `source`.
    """
    literal = re.sub(r"^\w+\s*[=:]\s*(?=[\[({])", "", text.strip())
    if re.match(r"""[\[{]|\(\s*["']""", literal):
        rows = _of_value(_parsed(literal, source), source)
    else:
        lines = text.rstrip().splitlines()
        rows = _unquoted(lines) or _counted(lines, source) or lines
    found = [one for row in rows if (one := _IDENTIFIED.fullmatch(row.strip())) and "\t" not in row]
    return rows if len(found) < len(rows) else [f"{one[1]}\t{one[2]}" for one in found]


def _unquoted(lines: Sequence[str]) -> list[str]:
    """Return what is between quotes on each line, nothing unless all have them."""
    found = [one for line in lines if (one := _QUOTED.fullmatch(line.strip()))]
    return [] if len(found) < len(lines) else [re.sub(r"\\(.)", r"\1", one[2]) for one in found]


def _counted(lines: Sequence[str], source: str) -> list[str]:
    """Return the names in the order of the numbers that count them, nothing if no numbers do."""
    for form in _NUMBERED:
        found = [one for line in lines if (one := form.fullmatch(line.strip()))]
        numbers, names = [int(one["number"]) for one in found], [one["name"] for one in found]
        alike, is_first = len(names) - len(set(names)), form is _NUMBERED[0]
        if len(found) < len(lines) or 2 * alike >= len(names):  # as in `gate 1`, `gate 2`
            continue
        if is_first and all(name[0].isdigit() for name in names):  # as in `1.5 mm`
            continue
        is_marked = all(one["mark"].strip(" ") for one in found)
        is_clear = is_marked or (20 * alike <= len(names) and (min(numbers) == 0 or numbers == sorted(numbers)))
        in_order = _in_order(numbers, names)
        if is_first and in_order == names and all("\t" in line for line in lines):
            return list(lines)  # a labels file, whose identifiers are numbers
        if in_order and is_clear:
            return _unquoted(in_order) or in_order
        if is_first + is_marked + (bool(in_order) or numbers[0] < 2) > 1:  # two of three signs of numbers that count
            raise ManifestError(f"{source}: {_UNCLEAR}")
    return []


def _in_order(numbers: Sequence[int], names: Sequence[Any]) -> list[Any]:
    """Return the names in the order of their numbers, nothing unless these count them from 0 or from 1."""
    first = min(numbers, default=0)
    is_count = first in (0, 1) and sorted(numbers) == list(range(first, first + len(numbers)))
    return [name for _, name in sorted(zip(numbers, names, strict=True))] if is_count else []


def _parsed(literal: str, source: str) -> Any:
    try:
        return json.loads(literal)
    except (ValueError, RecursionError) as error:
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return ast.literal_eval(literal)
        message = f"{source}: begins like a JSON list or object, but is not one: {error}; write one name on each line"
        raise ManifestError(message) from None


def _of_value(value: Any, source: str) -> list[str]:
    """Return the names of a list, or of an object that has names by number, numbers by name, or either inside."""
    if isinstance(value, dict):
        inner = next((value[key] for key in _INSIDE if isinstance(value.get(key), dict | list)), None)
        if inner is not None:
            return _of_value(inner, source)
        by_name = all(isinstance(number, int) for number in value.values())
        numbers, names = (value.values(), value.keys()) if by_name else (value.keys(), value.values())
        if all(str(number).isdecimal() for number in numbers):
            value = _in_order([int(number) for number in numbers], list(names))
            if not value:
                raise ManifestError(f"{source}: {_UNCLEAR}")
    entries = value if isinstance(value, list | tuple) else [value]
    rows = [one if isinstance(one, list | tuple) else [one] for one in entries]
    if not all(row and all(isinstance(name, str) for name in row) for row in rows):
        raise ManifestError(f'{source}: expected a JSON list of names, as in ["tabby", "espresso"]')
    return [", ".join(row) for row in rows]
