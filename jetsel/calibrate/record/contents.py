"""Which of the found files are new, which are the same photograph, and which contradict each other."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jetsel.base.files import sha256_of
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.photographs import FoundImages, Labelled
from jetsel.calibrate.record.workers import Workers

SEED = 2018  # of the order in which images are recorded and timed

Content = tuple[int, int, str]
"""A file as it was hashed: size in bytes, time of its last change in ns, SHA-256 in hexadecimal."""


class ImagePart(NamedTuple):
    """A file, or a part of one. key: what identifies it, see `Cut.key`. sha256: of the file."""

    key: str
    sha256: str


@dataclass(frozen=True)
class Task:
    """A photograph that lacks predictions. number: its id if it is recorded already; missing: names of models.

    sha256: of the file. key: what identifies it, or the part of it that is recorded.
    """

    photograph: Labelled
    sha256: str
    key: str
    number: int | None
    missing: tuple[str, ...]


def claim(store: Store, images: FoundImages, workers: Workers) -> list[Task] | None:
    """Hash the files and settle which are one photograph; return what lacks predictions, None if stopped.

    The same content counts once, under the first of its paths; under two labels it counts not at all. What is left out
    is listed anew by each run. A photograph recorded before under another label takes the one it has now.
    """
    copies: dict[ImagePart, list[Labelled]] = defaultdict(list)
    unreadable: list[tuple[Path, str]] = []
    before = {path: tuple(content) for path, *content in store.connection.execute("SELECT * FROM files")}
    of_path: dict[Path, list[Labelled]] = defaultdict(list)
    for photograph in images.photographs:
        of_path[photograph.path].append(photograph)
    given = [(path, before.get(str(path))) for path in of_path]
    with closing(workers.work("reading", _content, given)) as contents:
        for (path, label), content in contents:
            if isinstance(content, str):
                unreadable.append((path, content))
                continue
            for photograph in of_path[path]:
                copies[ImagePart(photograph.cut.key(content[2]), content[2])].append(photograph)
            if content != label:
                row = (str(path), *content)
                store.connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)
    if workers.stop.is_set():
        return None
    store.connection.execute("DELETE FROM skipped")
    store.skip((skipped.path, skipped.reason) for skipped in images.skipped)
    store.skip(unreadable)
    chosen = _choose(store, copies)
    drawn = sorted(chosen, key=lambda one: drawn_order(one[0].key))
    return [task for part, photograph in drawn if (task := _task(store, photograph, part)).missing]


def drawn_order(sha256: str, seed: int = SEED) -> bytes:
    """Return what images are sorted by, so that the first of them are a draw over all classes and folders.

    The same seed and content give the same: a smaller number of images is the beginning of a larger one.
    """
    return hashlib.sha256(f"{seed} {sha256}".encode()).digest()


def _content(item: tuple[Path, Content | None]) -> Content | str:
    """Return the file's content, hashed unless its size and date are those of before; or why it cannot be read."""
    path, label = item
    try:
        status = path.stat()
        if label is not None and label[:2] == (status.st_size, status.st_mtime_ns):
            return label
        sha256 = sha256_of(path)
    except OSError as fault:
        return f"unreadable: {fault.strerror}"
    return status.st_size, status.st_mtime_ns, sha256


def _choose(store: Store, copies: Mapping[ImagePart, list[Labelled]]) -> list[tuple[ImagePart, Labelled]]:
    """Return each content with the first of its paths, and list the others and those that contradict.

    What was recorded before gets the place and the label that it has now.
    """
    execute = store.connection.execute
    execute("CREATE TEMP TABLE chosen (sha256 TEXT PRIMARY KEY)")
    chosen = []
    for part, photographs in copies.items():
        first, *others = photographs
        labels = {photograph.class_number: photograph.label or "" for photograph in photographs}
        if len(labels) > 1:
            one, other = min(labels.values()), max(labels.values())
            reason = f"contradictory: the same file is labelled {one} and {other}; keep one"
            store.skip((photograph.path, reason) for photograph in photographs)
            execute("DELETE FROM photographs WHERE sha256 = ?", (part.key,))
        else:
            store.skip((other.path, f"duplicate: the same file as {first.path}") for other in others)
            chosen.append((part, first))
            execute("INSERT INTO chosen VALUES (?)", (part.key,))
            execute(
                "UPDATE photographs SET path = ?, class = COALESCE(?, class), label = COALESCE(?, label)"
                " WHERE sha256 = ?",
                (str(first.path), first.class_number, first.label, part.key),
            )
    return chosen


def _task(store: Store, photograph: Labelled, part: ImagePart) -> Task:
    execute = store.connection.execute
    (number,) = execute("SELECT id FROM photographs WHERE sha256 = ?", (part.key,)).fetchone() or (None,)
    return Task(photograph, part.sha256, part.key, number, store.missing("predictions", number))
