"""The labels of a family, a table of class identifiers and English names, and how owners' lists of classes become one.

Models whose labels files have the same bytes can share a family.
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

# A cell in quotes between separators: the text before it, the quote, the content (a doubled quote or \ escapes one).
_QUOTED = re.compile(r"""(^|[,;:=]\s*)(["'])((?:\\.|\2\2|(?!\2|\\).)*)\2(?:,?$|(?=\s*[,;:=]))""")
_COLUMN = r"(?:(?:class|label)[ _-]?)?(?:ids?|index|idx|number|names?)|labels?|class(?:es)?|category|wnid|synset"
_HEADER = re.compile(rf"(?i:(?:(?:{_COLUMN}):?\s*(?:[,;\t]\s*|$))+)")  # a line of column titles
_YAML = re.compile(
    r"""(?m)^names:[ \t]*(?:\[(?P<row>[^]"']*)\]|(?P<literal>[\[{][^]}]*[]}])|\n(?P<block>(?:[ \t-].*\n?)+))"""
)
_IDENTIFIED = re.compile(r"(n\d{8})[\s,:]+(\S.*)")  # a WordNet identifier and names
_NUMBERED = (  # `class 0: cat`, `0 cat`, `cat 0`, with various marks between number and name
    re.compile(r"(?:(?i:class)[ _]|\()?(?P<number>[0-9]{1,7})(?P<mark> *(?:[):]|[-=]+>) *)(?P<name>[^\s>].*)"),
    re.compile(r"(?P<number>[0-9]{1,7})(?P<mark>\s*[,;:.)=\t]\s*|\s+(?:-\s+)?)(?P<name>\S.*)"),
    re.compile(r"(?P<name>.*[^\s,;:=])(?P<mark>\s*[,;:=\t]\s*|\s+)(?P<number>[0-9]{1,7})"),
)
_UNCLEAR = (
    "its numbers do not count the classes from 0 or 1, each once: correct them, as in 0: cat, or put names that have "
    "numbers in quotes"
)
Report = Callable[[str], None]  # shows a line to the owner
_INSIDE = ("id2label", "label2id", "names", "labels", "classes", "categories", "class_to_idx")  # keys in objects


def parse_class_names(text: str, source: str, report: Report) -> list[str]:
    """Return the classes in an owner's text, in the order of the model's outputs: names, or `identifier<tab>names`.

    The text has a class on each line, perhaps with numbers, quotes or a header, or is a JSON, Python or YAML value.
    source: origin of the text, for messages. report: shows a line to the owner. Raises ManifestError if it is unclear.
    """
    if yaml := _YAML.search(text.replace("\r\n", "\n")):  # `names` among the keys of a YAML data set
        text = yaml["literal"] or yaml["block"] or yaml["row"].replace(",", "\n")
    literal_text = re.sub(r"^\w+\s*[=:]\s*(?=[\[({])", "", text.strip())
    if re.match(r"""[\[{]|\(\s*["']""", literal_text):
        rows = _names_in_value(_parse_literal(literal_text, source), source)
    else:
        rows = _names_in_lines(text.rstrip().splitlines(), source, report)
    identified = [match for row in rows if (match := _IDENTIFIED.fullmatch(row.strip())) and "\t" not in row]
    return rows if len(identified) < len(rows) else [f"{match[1]}\t{match[2]}" for match in identified]


def _names_in_lines(lines: list[str], source: str, report: Report) -> list[str]:
    """Return the classes of lines such as `cat`, `"cat"`, `0: cat` or `- cat`, perhaps after a header line."""
    if len(lines) > 1 and _HEADER.fullmatch(_unquoted(lines[0])) and not _QUOTED.fullmatch(lines[0].strip()):
        report(f"{source}: its first line, {lines.pop(0)}, is left out as a header: if it is a class, put it in quotes")
    if all(line.lstrip().startswith("- ") for line in lines):  # a YAML list
        lines = [line.lstrip()[2:] for line in lines]
    unquoted = [_unquoted(line) for line in lines]
    are_quoted = [_QUOTED.fullmatch(line.strip()) is not None for line in lines]  # in quotes, a number is text
    rows = unquoted if any(are_quoted) else _names_by_number(unquoted, source) or unquoted
    for row, is_quoted in zip(rows, are_quoted, strict=True):
        name, _, names = row.strip().partition("\t")
        if not is_quoted and name != names and re.match(r"""["']|.*["']$""", name):
            raise ManifestError(f"{source}: {row[:40]!r} has a quotation mark at one end: put the whole name in quotes")
    return rows


def _unquoted(line: str) -> str:
    """Return a line without CSV's or Python's quotes around its cells; a line with a tab (labels file) unchanged."""
    plain = _QUOTED.sub(lambda cell: cell[1] + re.sub(rf"\\(.)|{cell[2]}({cell[2]})", r"\1\2", cell[3]), line.strip())
    return line if "\t" in line or plain == line.strip() else plain


def _names_by_number(lines: Sequence[str], source: str) -> list[str]:
    """Return the names sorted by the numbers on their lines; [] if there are none. Raises ManifestError if unclear."""
    for pattern in _NUMBERED:
        matches = [match for line in lines if (match := pattern.fullmatch(line.strip().removesuffix(",")))]
        numbers, names = [int(match["number"]) for match in matches], [match["name"] for match in matches]
        repeats, number_first = len(names) - len(set(names)), pattern is not _NUMBERED[-1]
        if len(matches) < len(lines) or 2 * repeats >= len(names):  # such as `gate 1`, `gate 2`
            continue
        if number_first and all(name[0].isdigit() for name in names):  # such as `1.5 mm`
            continue
        has_marks = all(match["mark"].strip(" ") for match in matches)
        is_certain = has_marks or (20 * repeats <= len(names) and (min(numbers) == 0 or numbers == sorted(numbers)))
        in_order = _sort_by_count(numbers, names)
        if number_first and in_order == names and all("\t" in line for line in lines):
            return list(lines)  # a labels file with numbers as identifiers
        if in_order and is_certain:
            return [_unquoted(name) for name in in_order]
        # Two of three signs show that the lines are numbered, so the numbers must be wrong.
        signs = number_first + has_marks + (bool(in_order) or numbers[0] < 2)
        if pattern is not _NUMBERED[0] and signs >= 2:
            raise ManifestError(f"{source}: {_UNCLEAR}")
    return []


def _sort_by_count(numbers: Sequence[int], names: Sequence[Any]) -> list[Any]:
    """Return the names sorted by their numbers; an empty list unless the numbers count from 0 or 1 without gaps."""
    lowest = min(numbers, default=0)
    is_count = lowest in (0, 1) and sorted(numbers) == list(range(lowest, lowest + len(numbers)))
    return [name for _, name in sorted(zip(numbers, names, strict=True))] if is_count else []


def _parse_literal(literal: str, source: str) -> Any:
    """Return the value of a JSON text or Python literal; raises ManifestError if it is neither."""
    try:
        return json.loads(literal, object_pairs_hook=lambda pairs: _object_without_repeats(source, pairs))
    except (ValueError, RecursionError) as error:
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return ast.literal_eval(literal)
        raise ManifestError(f"{source}: begins like a JSON list, but: {error}; write one name on each line") from None


def _object_without_repeats(source: str, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a JSON object's pairs as a dict; raises ManifestError for a repeated key, as the last would win."""
    if len(dict(pairs)) < len(pairs):
        raise ManifestError(f"{source}: one of its objects has a key or a number twice: correct it")
    return dict(pairs)


def _names_in_value(value: Any, source: str) -> list[str]:
    """Return the class names in a decoded JSON value, in the outputs' order; raises ManifestError for other values."""
    if value and isinstance(value, list) and all(isinstance(row, dict) and {"id", "name"} <= set(row) for row in value):
        value = _object_without_repeats(source, [(str(row["id"]), row["name"]) for row in value])
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
    rows = [entry if isinstance(entry, list | tuple) else [entry] for entry in entries]
    if not all(row and all(isinstance(name, str) for name in row) for row in rows):
        raise ManifestError(f'{source}: expected a JSON list of names, as in ["tabby", "espresso"]')
    return [", ".join(row) for row in rows]


MAX_BYTES = 16 * 2**20  # a larger labels file is refused unread; the 21,841 classes of all of ImageNet take under 2 MB


@dataclass(frozen=True)
class Labels:
    """The classes of a family, in the order of the models' outputs.

    wnids: unique identifiers; WordNet's for ImageNet's classes, otherwise usually names. names: the first English name
    of each class, for display. synonyms: all English names of each class, with commas. content: bytes of the file.
    """

    wnids: tuple[str, ...]
    names: tuple[str, ...]
    synonyms: tuple[str, ...]
    content: bytes

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read a UTF-8 file: each line is a class's identifier, a tab, and English names with commas between them.

        If the text after the tab equals the identifier, it is one name, commas included. Raises ManifestError.
        """
        return cls.parse(_read_content(path), path)

    @classmethod
    def parse(cls, content: bytes, source: Path | str) -> Labels:
        """Return the labels in a labels file's content, see `read`. source: file or origin, for messages."""
        lines = _decode_utf8(content, source).splitlines()
        rows = [_parse_row(source, number, line) for number, line in enumerate(lines, 1)]
        if not rows:
            raise ManifestError(f"{source}: no labels; each line is an identifier, a tab and English names")
        wnids = tuple(wnid for wnid, _ in rows)
        numbers: dict[str, int] = {}
        for number, wnid in enumerate(wnids, 1):
            if numbers.setdefault(exact(wnid), number) != number:
                raise ManifestError(f"{source}, line {number}: {wnid} is on line {numbers[exact(wnid)]} already")
        if len(rows) == 1:
            raise ManifestError(f"{source}: only one class, {wnids[0]}: a model needs two or more, such as yes and no")
        display_names = tuple(names if names == wnid else names.split(",")[0].strip() for wnid, names in rows)
        return cls(wnids, display_names, tuple(names for _, names in rows), content)

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the labels file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def file_of(self, family: str) -> str:
        """Return the name under which a new family's labels file is stored."""
        return f"{family}.{self.sha256[:12]}.tsv"


def read_labels_text(path: Path) -> str:
    """Return the text of an owner's file with class names; raises ManifestError if it is unreadable or not UTF-8."""
    return _decode_utf8(_read_content(path), path).removeprefix("\ufeff")  # Windows' mark of UTF-8


def labels_from_text(text: str, source: str, report: Report = lambda _line: None) -> Labels:
    """Return the labels in the text of a labels file or list of classes; raises ManifestError. source: for messages."""
    names = parse_class_names(text, source, report)
    if names and all("\t" in name.strip() for name in names):
        table = text if names == text.rstrip().splitlines() else "".join(f"{row}\n" for row in names)
        return Labels.parse(table.encode(), source)
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        example = f"{repeated} ({names.index(repeated)})"
        report(
            f"{source}: several classes are called {repeated}: their identifiers have their numbers, as in {example}"
        )
    unique = {name.split(",")[0].strip() for name in names}  # if they are not, commas hardly separate synonyms
    are_synonyms = 20 * (len(names) - len(unique)) <= len(names) and not any(name.isdecimal() for name in unique)
    return labels_from_names(names, source, synonyms=are_synonyms)


def labels_from_names(names: Sequence[str], source: str, *, synonyms: bool = False) -> Labels:
    """Return the labels of classes that have names but no identifiers; a class's name becomes its identifier.

    source: origin of the names, for messages. synonyms: True if commas separate several names of one class; its first
    name becomes the identifier. If classes share a name (ImageNet has two kinds of crane), the identifier also has the
    class's number, from 0. Raises ManifestError for invalid names.
    """
    identifiers = [(name.split(",")[0] if synonyms else name).strip() for name in names]
    uses = Counter(identifiers)
    spellings: dict[str, str] = {}
    rows = []
    for number, (name, identifier) in enumerate(zip(names, identifiers, strict=True)):
        if not identifier or len(name.splitlines()) > 1 or "\t" in name:
            raise ManifestError(f"{source}, class {number + 1}: {name[:40]!r} is not a name; write one class a line")
        if (other := spellings.setdefault(exact(identifier), identifier)) != identifier:
            raise ManifestError(
                f"{source}: {identifier!a} and {other!a} are one name, {identifier}, in two forms of Unicode: "
                "join the two classes, or rename one"
            )
        wnid = identifier if uses[identifier] == 1 else f"{identifier} ({number})"
        rows.append(f"{wnid}\t{wnid if ',' in identifier else name.strip()}\n")  # commas: see Labels.read
    if not names:
        raise ManifestError(f"{source}: no classes; write one a line, in the order of the model's outputs")
    return Labels.parse("".join(rows).encode(), source)


def _read_content(path: Path) -> bytes:
    """Return a file's content; raises ManifestError if it is unreadable or larger than MAX_BYTES."""
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; put the labels file there") from error


def _decode_utf8(content: bytes, source: Path | str) -> str:
    """Return the text; raises ManifestError, which says how to save it, if it is in another encoding."""
    if b"\0" in content[:64]:
        raise ManifestError(f"{source}: in UTF-16, which Windows calls Unicode; save it as UTF-8")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{source}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _parse_row(source: Path | str, number: int, line: str) -> tuple[str, str]:
    """Return the identifier and the names on a line of a labels file; raises ManifestError. number: of the line."""
    columns = [column.strip() for column in line.split("\t")]
    wnid, names = columns[0], columns[-1]
    if len(columns) != 2 or not wnid or not (names == wnid or names.split(",")[0].strip()):
        raise ManifestError(
            f"{source}, line {number}: {line[:40]!r} is not an identifier, a tab and English names, "
            "as in: n02123045<tab>tabby, tabby cat"
        )
    return columns[0], columns[1]
