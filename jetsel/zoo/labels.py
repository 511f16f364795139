"""The labels of a family: a table of identifiers and English names, whose hash says which models answer alike.

It is read here, and made of the files in which people have the names of classes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.base.names import exact
from jetsel.zoo.class_lists import listed

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

        If the names are the identifier again, they are one name with commas in it. Raises ManifestError that names the
        file and the line.
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
            if seen.setdefault(exact(wnid), number) != number:
                raise ManifestError(f"{path}, line {number}: {wnid} is on line {seen[exact(wnid)]} already")
        if len(rows) == 1:
            raise ManifestError(f"{path}: only one class, {wnids[0]}: a model needs two or more, such as yes and no")
        synonyms = tuple(names for _, names in rows)
        first = tuple(names if names == wnid else names.split(",")[0].strip() for wnid, names in rows)
        return cls(wnids, first, synonyms, hashlib.sha256(content).hexdigest())


def labels_file(path: Path, tell: Callable[[str], None] = lambda _line: None) -> bytes:
    """Return a labels file (see Labels.read) of what `path` holds, in the order of the model's outputs.

    It may be a labels file itself, whose bytes stay, or any list of names that `class_lists.listed` reads. tell: takes
    a line for the owner. Raises ManifestError that names the file, and the line if there is one.
    """
    text = _text(_content(path), path).removeprefix("\ufeff")  # as Windows saves UTF-8
    names = listed(text, str(path), tell)
    if names and all("\t" in name.strip() for name in names):
        return text.encode() if names == text.rstrip().splitlines() else "".join(f"{row}\n" for row in names).encode()
    shared = [name for name, times in Counter(names).items() if times > 1]
    if shared:
        example = f"{shared[0]} ({names.index(shared[0])})"
        tell(f"{path}: several classes are called {shared[0]}: their identifiers have their numbers, as in {example}")
    first = {name.split(",")[0].strip() for name in names}
    are_synonyms = 20 * (len(names) - len(first)) <= len(names) and not any(name.isdecimal() for name in first)
    return table_of(names, str(path), synonyms=are_synonyms)


def table_of(names: Sequence[str], source: str, *, synonyms: bool = False) -> bytes:
    """Return the labels file of classes that have names alone.

    synonyms: a name is several, parted by commas, of which the first is the identifier too. If classes share an
    identifier (ImageNet has two kinds of crane), the class's number, from 0, is added. Raises ManifestError that calls
    the classes those of `source`.
    """
    first = [(name.split(",")[0] if synonyms else name).strip() for name in names]
    seen: dict[str, str] = {}
    for number, (name, shown) in enumerate(zip(names, first, strict=True), 1):
        if not shown or len(name.splitlines()) > 1 or "\t" in name:
            raise ManifestError(f"{source}, class {number}: {name[:40]!r} is not a name; write one class on each line")
        if seen.setdefault(exact(shown), shown) != shown:
            raise ManifestError(
                f"{source}: {shown!a} and {seen[exact(shown)]!a} are one name, {shown}, in two forms of Unicode: join "
                "the two classes, or rename one"
            )
    if not names:
        raise ManifestError(f"{source}: no classes; write one a line, in the order of the model's outputs")
    times = Counter(first)
    rows = []
    for number, (name, shown) in enumerate(zip(names, first, strict=True)):
        wnid = shown if times[shown] == 1 else f"{shown} ({number})"
        rows.append(f"{wnid}\t{wnid if ',' in shown else name.strip()}\n")  # see Labels.read on commas
    return "".join(rows).encode()


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; put the labels file there") from error


def _text(content: bytes, path: Path) -> str:
    if b"\0" in content[:64]:
        raise ManifestError(f"{path}: in UTF-16, which Windows calls Unicode; save it as UTF-8")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _row(path: Path, number: int, line: str) -> tuple[str, str]:
    columns = [column.strip() for column in line.split("\t")]
    first, names = columns[0], columns[-1]
    if len(columns) != 2 or not first or not (names == first or names.split(",")[0].strip()):
        raise ManifestError(
            f"{path}, line {number}: {line[:40]!r} is not an identifier, a tab and English names, "
            "as in: n02123045<tab>tabby, tabby cat"
        )
    return columns[0], columns[1]
