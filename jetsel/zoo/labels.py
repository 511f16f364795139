"""The labels of a family: a table of identifiers and English names, whose hash says which models answer alike.

It is read here, and made of the files in which people have the names of classes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded

MAX_BYTES = 16 * 2**20
"""Past this labels are refused unread: the 21,841 classes of all of ImageNet take under 2 MB."""


@dataclass(frozen=True)
class Labels:
    """The classes, in the order of the models' outputs.

    wnids: identifiers (WordNet's in the starter family). names: the first English name of each, for display.
    synonyms: all English names of each as the file has them. sha256: of the file's bytes, in hexadecimal.
    """

    wnids: tuple[str, ...]
    names: tuple[str, ...]
    synonyms: tuple[str, ...]
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read a table of UTF-8 lines, each an identifier, a tab and English names parted by commas.

        Raises ManifestError that names the file and the line.
        """
        return cls.parse(_content(path), path)

    @classmethod
    def parse(cls, content: bytes, path: Path) -> Labels:
        """Read a file's bytes as `read` does; path: what messages call it."""
        rows = [_row(path, number, line) for number, line in enumerate(_text(content, path).splitlines(), 1)]
        if not rows:
            raise ManifestError(f"{path}: no labels; each line is an identifier, a tab and English names")
        wnids = tuple(wnid for wnid, _ in rows)
        seen: dict[str, int] = {}
        for number, wnid in enumerate(wnids, 1):
            if seen.setdefault(wnid, number) != number:
                raise ManifestError(f"{path}, line {number}: {wnid} is on line {seen[wnid]} already")
        synonyms = tuple(names for _, names in rows)
        first = tuple(names.split(",")[0].strip() for names in synonyms)
        return cls(wnids, first, synonyms, hashlib.sha256(content).hexdigest())


def labels_file(path: Path) -> bytes:
    """Return a labels file (see Labels.read) of what `path` holds, in the order of the model's outputs.

    It may be a labels file itself, whose bytes stay, a JSON list of names, or a text of one name a line.
    Raises ManifestError that names the file, and the line if there is one.
    """
    text = _text(_content(path), path).removeprefix("\ufeff")  # as Windows saves UTF-8
    lines = text.rstrip().splitlines()
    if lines and all("\t" in line.strip() for line in lines):
        return text.encode()
    names = _listed(path, text) if text.lstrip().startswith("[") else lines
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name.strip() and seen.setdefault(name, number) != number:
            there = f"classes {seen[name]} and {number} are both {name.strip()!r}"
            raise ManifestError(f"{path}: {there}: give each a name of its own, in the order of the model's outputs")
    return table_of(names, str(path))


def table_of(names: Sequence[str], source: str) -> bytes:
    """Return the labels file of classes that have names alone; each may be several, parted by commas.

    The first name is the identifier too. If classes share it (ImageNet has two kinds of crane), the class's number,
    from 0, is added. Raises ManifestError that calls the classes those of `source`.
    """
    first = [name.split(",")[0].strip() for name in names]
    for number, (name, shown) in enumerate(zip(names, first, strict=True), 1):
        if not shown or len(name.splitlines()) > 1 or "\t" in name:
            raise ManifestError(f"{source}, class {number}: {name[:40]!r} is not a name; write one class on each line")
    if not names:
        raise ManifestError(f"{source}: no classes; write one a line, in the order of the model's outputs")
    times = Counter(first)
    rows = [
        f"{shown if times[shown] == 1 else f'{shown} ({number})'}\t{name.strip()}\n"
        for number, (name, shown) in enumerate(zip(names, first, strict=True))
    ]
    return "".join(rows).encode()


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; put the labels file there") from error


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _row(path: Path, number: int, line: str) -> tuple[str, str]:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 2 or not columns[0] or not columns[1].split(",")[0].strip():
        raise ManifestError(
            f"{path}, line {number}: {line[:40]!r} is not an identifier, a tab and English names, "
            "as in: n02123045<tab>tabby, tabby cat"
        )
    return columns[0], columns[1]


def _listed(path: Path, text: str) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path}: begins like a JSON list, but is not one: {error}") from None
    if not all(isinstance(name, str) for name in names):
        raise ManifestError(f'{path}: expected a JSON list of names, as in ["tabby", "espresso"]')
    return list(names)
