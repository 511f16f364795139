"""Read the names of classes from the files that people have, and write them as a family's labels file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jetsel.errors import ManifestError
from jetsel.store import read_bounded
from jetsel.zoo.labels import MAX_BYTES


def labels_file(path: Path) -> bytes:
    """Return a labels file (see Labels.read) of what `path` holds, in the order of the model's outputs.

    It may be a labels file itself, whose bytes stay, a JSON list of names, or a text of one name a line.
    Raises ManifestError that names the file, and the line where there is one.
    """
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; name the file of the classes") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    lines = text.rstrip().splitlines()
    if lines and all("\t" in line.strip() for line in lines):
        return text.encode()
    return table_of(_listed(path, text) if text.lstrip().startswith("[") else lines, str(path))


def table_of(names: Sequence[str], source: str) -> bytes:
    """Return the labels file of classes that have names alone; each may be several, parted by commas.

    The first name is the identifier too. Where classes share it (ImageNet has two kinds of crane), the class's number,
    from 0, is added. Raises ManifestError that calls the classes those of `source`.
    """
    first = [name.split(",")[0].strip() for name in names]
    for number, (name, shown) in enumerate(zip(names, first, strict=True), 1):
        if not shown or len(name.splitlines()) > 1 or "\t" in name:
            raise ManifestError(f"{source}, class {number}: {name[:40]!r} is no name; write one class a line")
    if not names:
        raise ManifestError(f"{source}: no classes; write one a line, in the order of the model's outputs")
    times = Counter(first)
    rows = [
        f"{shown if times[shown] == 1 else f'{shown} ({number})'}\t{name.strip()}\n"
        for number, (name, shown) in enumerate(zip(names, first, strict=True))
    ]
    return "".join(rows).encode()


def _listed(path: Path, text: str) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path}: begins as a JSON list and is none: {error}") from None
    if not all(isinstance(name, str) for name in names):
        raise ManifestError(f'{path}: a JSON list of names is due, as in ["tabby", "espresso"]')
    return list(names)
