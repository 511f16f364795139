"""The labels of a family: a table of identifiers and English names, whose hash says which models answer alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ManifestError
from jetsel.store import read_bounded

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
        try:
            content = read_bounded(path, MAX_BYTES)
        except OSError as error:
            raise ManifestError(f"{path}: cannot be read: {error.strerror}; put the labels file there") from error
        return cls.parse(content, path)

    @classmethod
    def parse(cls, content: bytes, path: Path) -> Labels:
        """Read a file's bytes as `read` does; path: what messages call it."""
        try:
            lines = content.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ManifestError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1)]
        if not rows:
            raise ManifestError(f"{path}: no labels; each line is an identifier, a tab and English names")
        wnids = tuple(wnid for wnid, _ in rows)
        seen: dict[str, int] = {}
        for number, wnid in enumerate(wnids, 1):
            if seen.setdefault(wnid, number) != number:
                raise ManifestError(f"{path}, line {number}: {wnid} stands on line {seen[wnid]} already")
        synonyms = tuple(names for _, names in rows)
        first = tuple(names.split(",")[0].strip() for names in synonyms)
        return cls(wnids, first, synonyms, hashlib.sha256(content).hexdigest())


def _row(path: Path, number: int, line: str) -> tuple[str, str]:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 2 or not columns[0] or not columns[1].split(",")[0].strip():
        raise ManifestError(
            f"{path}, line {number}: {line[:40]!r} is not an identifier, a tab and English names, "
            "as in: n02123045<tab>tabby, tabby cat"
        )
    return columns[0], columns[1]
