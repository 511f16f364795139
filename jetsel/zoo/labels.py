"""The labels of a family: a table of identifiers and English names.

Models with equal tables, by hash, can share a family. Tables are also made from users' own lists of class names.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.base.names import exact

_QUOTED = re.compile(r"""(^|[,;:=]\s*)(["'])((?:\\.|\2\2|(?!\2|\\).)*)\2(?:,?$|(?=\s*[,;:=]))""")
_COLUMN = r"(?:(?:class|label)[ _-]?)?(?:ids?|index|idx|number|names?)|labels?|class(?:es)?|category|wnid|synset"
_HEADER = re.compile(rf"(?i:(?:(?:{_COLUMN}):?\s*(?:[,;\t]\s*|$))+)")
_YAML = re.compile(
    r"""(?m)^names:[ \t]*(?:\[(?P<row>[^]"']*)\]|(?P<literal>[\[{][^]}]*[]}])|\n(?P<block>(?:[ \t-].*\n?)+))"""
)
_IDENTIFIED = re.compile(r"(n\d{8})[\s,:]+(\S.*)")  # a WordNet identifier and names
_NUMBERED = (
    re.compile(r"(?:(?i:class)[ _]|\()?(?P<number>[0-9]{1,7})(?P<mark> *(?:[):]|[-=]+>) *)(?P<name>[^\s>].*)"),
    re.compile(r"(?P<number>[0-9]{1,7})(?P<mark>\s*[,;:.)=\t]\s*|\s+(?:-\s+)?)(?P<name>\S.*)"),
    re.compile(r"(?P<name>.*[^\s,;:=])(?P<mark>\s*[,;:=\t]\s*|\s+)(?P<number>[0-9]{1,7})"),
)
_UNCLEAR = (
    "its numbers do not count the classes from 0 or 1, each once: correct them, as in 0: cat, or put names that have "
    "numbers in quotes"
)
_INSIDE = ("id2label", "label2id", "names", "labels", "classes", "categories", "class_to_idx")  # keys in objects


def parse_class_names(text: str, source: str, tell: Callable[[str], None]) -> list[str]:
    """Return the classes in a text in order, each a name, or an identifier, a tab and names.

    source: of the text, for messages. tell: takes a line for the owner. Raises ManifestError if the text is unclear.
    """
    if yaml := _YAML.search(text.replace("\r\n", "\n")):  # `names` among the keys of a YAML data set
        text = yaml["literal"] or yaml["block"] or yaml["row"].replace(",", "\n")
    literal = re.sub(r"^\w+\s*[=:]\s*(?=[\[({])", "", text.strip())
    if re.match(r"""[\[{]|\(\s*["']""", literal):
        rows = _names_in_value(_parse_literal(literal, source), source)
    else:
        rows = _names_in_lines(text.rstrip().splitlines(), source, tell)
    matches = [one for row in rows if (one := _IDENTIFIED.fullmatch(row.strip())) and "\t" not in row]
    return rows if len(matches) < len(rows) else [f"{one[1]}\t{one[2]}" for one in matches]


def _names_in_lines(lines: list[str], source: str, tell: Callable[[str], None]) -> list[str]:
    if len(lines) > 1 and _HEADER.fullmatch(_unquoted(lines[0])) and not _QUOTED.fullmatch(lines[0].strip()):
        tell(f"{source}: its first line, {lines.pop(0)}, is left out as a header: if it is a class, put it in quotes")
    if all(line.lstrip().startswith("- ") for line in lines):  # a YAML list
        lines = [line.lstrip()[2:] for line in lines]
    plain = [_unquoted(line) for line in lines]
    are_names = [_QUOTED.fullmatch(line.strip()) is not None for line in lines]
    rows = plain if any(are_names) else _names_by_number(plain, source) or plain
    for row, is_name in zip(rows, are_names, strict=True):
        name, _, names = row.strip().partition("\t")
        if not is_name and name != names and re.match(r"""["']|.*["']$""", name):
            raise ManifestError(f"{source}: {row[:40]!r} has a quotation mark at one end: put the whole name in quotes")
    return rows


def _unquoted(line: str) -> str:
    """Return a line without CSV's or Python's quotes around its cells; a labels file's line stays unchanged."""
    plain = _QUOTED.sub(lambda one: one[1] + re.sub(rf"\\(.)|{one[2]}({one[2]})", r"\1\2", one[3]), line.strip())
    return line if "\t" in line or plain == line.strip() else plain


def _names_by_number(lines: Sequence[str], source: str) -> list[str]:
    """Return the names sorted by the numbers on their lines, nothing if the lines are not numbered."""
    for form in _NUMBERED:
        matches = [one for line in lines if (one := form.fullmatch(line.strip().removesuffix(",")))]
        numbers, names = [int(one["number"]) for one in matches], [one["name"] for one in matches]
        alike, is_first = len(names) - len(set(names)), form is not _NUMBERED[-1]
        if len(matches) < len(lines) or 2 * alike >= len(names):  # such as `gate 1`, `gate 2`
            continue
        if is_first and all(name[0].isdigit() for name in names):  # such as `1.5 mm`
            continue
        is_marked = all(one["mark"].strip(" ") for one in matches)
        is_clear = is_marked or (20 * alike <= len(names) and (min(numbers) == 0 or numbers == sorted(numbers)))
        in_order = _sort_by_count(numbers, names)
        if is_first and in_order == names and all("\t" in line for line in lines):
            return list(lines)  # a labels file with numbers as identifiers
        if in_order and is_clear:
            return [_unquoted(name) for name in in_order]
        if form is not _NUMBERED[0] and is_first + is_marked + (bool(in_order) or numbers[0] < 2) > 1:  # two of 3 signs
            raise ManifestError(f"{source}: {_UNCLEAR}")
    return []


def _sort_by_count(numbers: Sequence[int], names: Sequence[Any]) -> list[Any]:
    """Return the names sorted by their numbers, nothing unless the numbers count from 0 or 1 without gaps."""
    first = min(numbers, default=0)
    is_count = first in (0, 1) and sorted(numbers) == list(range(first, first + len(numbers)))
    return [name for _, name in sorted(zip(numbers, names, strict=True))] if is_count else []


def _parse_literal(literal: str, source: str) -> Any:
    try:
        return json.loads(literal, object_pairs_hook=lambda pairs: _object_without_repeats(source, pairs))
    except (ValueError, RecursionError) as error:
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return ast.literal_eval(literal)
        raise ManifestError(f"{source}: begins like a JSON list, but: {error}; write one name on each line") from None


def _object_without_repeats(source: str, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ManifestError(f"{source}: one of its objects has a key or a number twice: correct it")
    return dict(pairs)


def _names_in_value(value: Any, source: str) -> list[str]:
    """Return the names in a list, or in an object of names by number or numbers by name, perhaps under a known key."""
    if value and isinstance(value, list) and all(isinstance(one, dict) and {"id", "name"} <= set(one) for one in value):
        value = _object_without_repeats(source, [(str(one["id"]), one["name"]) for one in value])
    if isinstance(value, dict):
        inner = next((value[key] for key in _INSIDE if isinstance(value.get(key), dict | list)), None)
        if inner is not None:
            return _names_in_value(inner, source)
        by_name = all(isinstance(number, int) for number in value.values())
        numbers, names = (value.values(), value.keys()) if by_name else (value.keys(), value.values())
        if all(str(number).isdecimal() for number in numbers):
            value = _sort_by_count([int(number) for number in numbers], list(names))
            if not value:
                raise ManifestError(f"{source}: {_UNCLEAR}")
    entries = value if isinstance(value, list | tuple) else [value]
    rows = [one if isinstance(one, list | tuple) else [one] for one in entries]
    if not all(row and all(isinstance(name, str) for name in row) for row in rows):
        raise ManifestError(f'{source}: expected a JSON list of names, as in ["tabby", "espresso"]')
    return [", ".join(row) for row in rows]


MAX_BYTES = 16 * 2**20  # a larger labels file is refused unread; the 21,841 classes of all of ImageNet take under 2 MB


@dataclass(frozen=True)
class Labels:
    """The classes, in the order of the models' outputs.

    wnids: identifiers (WordNet's in the starter family). names: the first English name of each class, for display.
    synonyms: all English names of each class, as in the file. content: of the file.
    """

    wnids: tuple[str, ...]
    names: tuple[str, ...]
    synonyms: tuple[str, ...]
    content: bytes

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read a UTF-8 table whose lines are an identifier, a tab and English names separated by commas.

        Names that equal the identifier are one name, which may contain commas. Raises ManifestError for invalid lines.
        """
        return cls.parse(_read_content(path), path)

    @classmethod
    def parse(cls, content: bytes, source: Path | str) -> Labels:
        """Parse a file's content, see `read`. source: for messages."""
        rows = [
            _parse_row(source, number, line)
            for number, line in enumerate(_decode_utf8(content, source).splitlines(), 1)
        ]
        if not rows:
            raise ManifestError(f"{source}: no labels; each line is an identifier, a tab and English names")
        wnids = tuple(wnid for wnid, _ in rows)
        numbers: dict[str, int] = {}
        for number, wnid in enumerate(wnids, 1):
            if numbers.setdefault(exact(wnid), number) != number:
                raise ManifestError(f"{source}, line {number}: {wnid} is on line {numbers[exact(wnid)]} already")
        if len(rows) == 1:
            raise ManifestError(f"{source}: only one class, {wnids[0]}: a model needs two or more, such as yes and no")
        first = tuple(names if names == wnid else names.split(",")[0].strip() for wnid, names in rows)
        return cls(wnids, first, tuple(names for _, names in rows), content)

    @cached_property
    def sha256(self) -> str:
        """The hash of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def file_of(self, family: str) -> str:
        """Return the name of the labels file of a family that is added."""
        return f"{family}.{self.sha256[:12]}.tsv"


def read_labels_text(path: Path) -> str:
    """Return the text of a file with class names; raises ManifestError if it cannot be read."""
    return _decode_utf8(_read_content(path), path).removeprefix("\ufeff")  # Windows' mark of UTF-8


def labels_from_text(text: str, source: str, tell: Callable[[str], None] = lambda _line: None) -> Labels:
    """Return the labels in a text with classes in the order of the outputs.

    The text is a labels file, which stays unchanged, or a list that `parse_class_names` reads.
    source: of the text, for messages. tell: takes a line for the owner. Raises ManifestError if the text is unclear.
    """
    names = parse_class_names(text, source, tell)
    if names and all("\t" in name.strip() for name in names):
        table = text if names == text.rstrip().splitlines() else "".join(f"{row}\n" for row in names)
        return Labels.parse(table.encode(), source)
    shared = [name for name, times in Counter(names).items() if times > 1]
    if shared:
        example = f"{shared[0]} ({names.index(shared[0])})"
        tell(f"{source}: several classes are called {shared[0]}: their identifiers have their numbers, as in {example}")
    first = {name.split(",")[0].strip() for name in names}
    are_synonyms = 20 * (len(names) - len(first)) <= len(names) and not any(name.isdecimal() for name in first)
    return labels_from_names(names, source, synonyms=are_synonyms)


def labels_from_names(names: Sequence[str], source: str, *, synonyms: bool = False) -> Labels:
    """Return the labels of classes that have only names.

    synonyms: whether commas separate several names of one class; the first name is then the identifier. If classes
    share an identifier (ImageNet has two kinds of crane), the class's number, from 0, is added. source: for messages.
    Raises ManifestError for invalid names.
    """
    first = [(name.split(",")[0] if synonyms else name).strip() for name in names]
    times = Counter(first)
    spellings: dict[str, str] = {}
    rows = []
    for number, (name, shown) in enumerate(zip(names, first, strict=True)):
        if not shown or len(name.splitlines()) > 1 or "\t" in name:
            raise ManifestError(f"{source}, class {number + 1}: {name[:40]!r} is not a name; write one class a line")
        if spellings.setdefault(exact(shown), shown) != shown:
            raise ManifestError(
                f"{source}: {shown!a} and {spellings[exact(shown)]!a} are one name, {shown}, in two forms of Unicode: "
                "join the two classes, or rename one"
            )
        wnid = shown if times[shown] == 1 else f"{shown} ({number})"
        rows.append(f"{wnid}\t{wnid if ',' in shown else name.strip()}\n")  # commas: see Labels.read
    if not names:
        raise ManifestError(f"{source}: no classes; write one a line, in the order of the model's outputs")
    return Labels.parse("".join(rows).encode(), source)


def _read_content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; put the labels file there") from error


def _decode_utf8(content: bytes, source: Path | str) -> str:
    if b"\0" in content[:64]:
        raise ManifestError(f"{source}: in UTF-16, which Windows calls Unicode; save it as UTF-8")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{source}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _parse_row(source: Path | str, number: int, line: str) -> tuple[str, str]:
    columns = [column.strip() for column in line.split("\t")]
    first, names = columns[0], columns[-1]
    if len(columns) != 2 or not first or not (names == first or names.split(",")[0].strip()):
        raise ManifestError(
            f"{source}, line {number}: {line[:40]!r} is not an identifier, a tab and English names, "
            "as in: n02123045<tab>tabby, tabby cat"
        )
    return columns[0], columns[1]
