"""Which of the found files are new, which are the same photograph, and which contradict each other."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from jetsel.calibrate.record.bounded import in_order
from jetsel.calibrate.record.photographs import Found, Labelled
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.store import Store

_PAGE = 256
_CHUNK_BYTES = 1 << 20


Content = tuple[int, int, str]
"""A file as it was hashed: size in bytes, time of its last change in ns, SHA-256 in hexadecimal."""


@dataclass(frozen=True)
class Task:
    """A photograph that lacks predictions. photograph: its id where it is recorded already; missing: models."""

    path: str
    sha256: str
    class_number: int | None
    label: str | None
    photograph: int | None
    missing: tuple[str, ...]


def claim(store: Store, found: Found, workers: int, tell: Tell | None, stop: Stop) -> bool:
    """Hash the files and settle which are one photograph; True unless stopped.

    The same content counts once, under the first of its paths; under two labels it counts not at all. What is left out
    is listed anew by each run. A photograph recorded before under another label takes the one it has now.
    """
    copies: dict[str, list[Labelled]] = defaultdict(list)
    unreadable: list[tuple[Path, str]] = []
    reporter = Reporter("reading", len(found.photographs), tell)
    with closing(in_order(_content, _remembered(store, found.photographs), workers)) as contents:
        for done, ((photograph, known), content) in enumerate(contents, 1):
            if isinstance(content, str):
                unreadable.append((photograph.path, content))
            else:
                copies[content[2]].append(photograph)
                if content != known:
                    row = (str(photograph.path), *content)
                    store.connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)
            store.tick()
            reporter.reach(done)
            if stop.is_set():
                return False
    store.connection.execute("DELETE FROM skipped")
    store.skip((skipped.path, skipped.reason) for skipped in found.skipped)
    store.skip(unreadable)
    _choose(store, copies)
    _list_tasks(store)
    return True


def count_tasks(store: Store) -> int:
    """Return how many photographs lack predictions."""
    (count,) = store.connection.execute("SELECT COUNT(*) FROM todo").fetchone()
    return int(count)


def tasks(store: Store) -> Iterator[Task]:
    """Yield the photographs that lack predictions, in the order of their paths, a page at a time."""
    last = 0
    while rows := store.connection.execute(
        "SELECT rowid, path, sha256, class, label, photograph FROM todo WHERE rowid > ? ORDER BY rowid LIMIT ?",
        (last, _PAGE),
    ).fetchall():
        last = rows[-1][0]
        for _, path, sha256, class_number, label, photograph in rows:
            missing = store.connection.execute(
                "SELECT name FROM wanted WHERE id NOT IN (SELECT model FROM predictions WHERE photograph IS ?)"
                " ORDER BY name",
                (photograph,),
            )
            yield Task(path, sha256, class_number, label, photograph, tuple(name for (name,) in missing))


def _remembered(store: Store, photographs: tuple[Labelled, ...]) -> Iterator[tuple[Labelled, Content | None]]:
    """Each photograph with its content as hashed by an earlier run."""
    for photograph in photographs:
        row = store.connection.execute(
            "SELECT size_bytes, mtime_ns, sha256 FROM files WHERE path = ?", (str(photograph.path),)
        ).fetchone()
        yield photograph, row


def _content(item: tuple[Labelled, Content | None]) -> Content | str:
    """Return the file's content, hashed unless its size and date are those of before; or why it cannot be read."""
    photograph, known = item
    try:
        status = photograph.path.stat()
        if known is not None and known[:2] == (status.st_size, status.st_mtime_ns):
            return known
        digest = hashlib.sha256()
        with photograph.path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as fault:
        return f"unreadable: {fault.strerror}"
    return status.st_size, status.st_mtime_ns, digest.hexdigest()


def _choose(store: Store, copies: Mapping[str, list[Labelled]]) -> None:
    """Take the first path of each content, its label with it, and list the others and those that contradict.

    What was recorded before gets the place and the label that it has now.
    """
    execute = store.connection.execute
    execute("CREATE TEMP TABLE chosen (path TEXT, sha256 TEXT PRIMARY KEY, class INTEGER, label TEXT)")
    for sha256, photographs in copies.items():
        first, *others = sorted(photographs, key=lambda photograph: str(photograph.path))
        labels = {photograph.class_number: photograph.label or "" for photograph in photographs}
        if len(labels) > 1:
            one, other = min(labels.values()), max(labels.values())
            reason = f"contradictory: the same file is labelled {one} and {other}; keep one"
            store.skip((photograph.path, reason) for photograph in photographs)
            execute("DELETE FROM photographs WHERE sha256 = ?", (sha256,))
        else:
            store.skip((other.path, f"duplicate: the same file as {first.path}") for other in others)
            row = (str(first.path), first.class_number, first.label, sha256)
            execute("INSERT INTO chosen (path, class, label, sha256) VALUES (?, ?, ?, ?)", row)
            execute(
                "UPDATE photographs SET path = ?, class = COALESCE(?, class), label = COALESCE(?, label)"
                " WHERE sha256 = ?",
                row,
            )


def _list_tasks(store: Store) -> None:
    """Make the list of what is to be done, in the order of paths."""
    store.connection.execute(
        "CREATE TEMP TABLE todo AS SELECT c.path, c.sha256, COALESCE(c.class, p.class) AS class, c.label,"
        " p.id AS photograph FROM chosen c"
        " LEFT JOIN photographs p USING (sha256) WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = p.id"
        " AND model IN (SELECT id FROM wanted)) < (SELECT COUNT(*) FROM wanted) ORDER BY c.path"
    )
