"""Which of the found files are new, which are the same photograph, and which contradict each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from jetsel.calibrate.record.bounded import in_order
from jetsel.calibrate.record.photographs import Found, Labelled
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.store import Store

_PAGE = 256
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Content:
    """A file as it was hashed; sha256 in hexadecimal."""

    size_bytes: int
    mtime_ns: int
    sha256: str


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
    execute = store.connection.execute
    execute("CREATE TEMP TABLE claims (path TEXT, class INTEGER, label TEXT, sha256 TEXT)")
    unreadable: list[tuple[Path, str]] = []
    reporter = Reporter("reading", len(found.photographs), tell)
    with closing(in_order(_content, _remembered(store, found.photographs), workers)) as contents:
        for done, ((photograph, known), content) in enumerate(contents, 1):
            if isinstance(content, str):
                unreadable.append((photograph.path, content))
            else:
                _note(store, photograph, known, content)
            store.tick()
            reporter.reach(done)
            if stop.is_set():
                return False
    execute("DELETE FROM skipped")
    store.skip((skipped.path, skipped.reason) for skipped in found.skipped)
    store.skip(unreadable)
    _settle(store)
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
        yield photograph, None if row is None else Content(*row)


def _content(item: tuple[Labelled, Content | None]) -> Content | str:
    """Return the file's content, hashed unless its size and date are those of before; or why it cannot be read."""
    photograph, known = item
    try:
        status = photograph.path.stat()
        if known is not None and (known.size_bytes, known.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return known
        digest = hashlib.sha256()
        with photograph.path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as fault:
        return f"unreadable: {fault.strerror}"
    return Content(status.st_size, status.st_mtime_ns, digest.hexdigest())


def _note(store: Store, photograph: Labelled, known: Content | None, content: Content) -> None:
    path = str(photograph.path)
    store.connection.execute(
        "INSERT INTO claims VALUES (?, ?, ?, ?)", (path, photograph.class_number, photograph.label, content.sha256)
    )
    if content != known:
        store.connection.execute(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)",
            (path, content.size_bytes, content.mtime_ns, content.sha256),
        )


def _settle(store: Store) -> None:
    """Choose one path for each content, list the others, relabel, and make the list of what is to be done."""
    execute = store.connection.execute
    execute("CREATE INDEX temp.claims_by_content ON claims (sha256, path)")
    # SQLite takes a row's other columns from where MIN was found.
    execute(
        "CREATE TEMP TABLE chosen AS SELECT MIN(path) AS path, sha256, class, label FROM claims"
        " GROUP BY sha256 HAVING COUNT(DISTINCT class) < 2"
    )
    execute("CREATE UNIQUE INDEX temp.chosen_by_content ON chosen (sha256)")
    execute(
        "INSERT OR REPLACE INTO skipped SELECT claims.path, 'duplicate: the same file as ' || chosen.path"
        " FROM claims JOIN chosen USING (sha256) WHERE claims.path != chosen.path"
    )
    execute(
        "INSERT OR REPLACE INTO skipped SELECT path, 'contradictory: the same file is labelled ' || one || ' and '"
        " || other || '; keep one' FROM claims JOIN (SELECT sha256, MIN(label) AS one, MAX(label) AS other FROM claims"
        " GROUP BY sha256 HAVING COUNT(DISTINCT class) > 1) USING (sha256)"
    )
    execute("DELETE FROM photographs WHERE sha256 IN (SELECT sha256 FROM claims EXCEPT SELECT sha256 FROM chosen)")
    changed = execute(
        "SELECT id, c.path, c.class, c.label FROM chosen c JOIN photographs p USING (sha256)"
        " WHERE p.path != c.path OR (c.class IS NOT NULL AND (p.class IS NOT c.class OR p.label IS NOT c.label))"
    ).fetchall()
    for photograph, path, class_number, label in changed:
        store.relabel(photograph, path, class_number, label)
    execute(
        "CREATE TEMP TABLE todo AS SELECT c.path, c.sha256, COALESCE(c.class, p.class) AS class, c.label,"
        " p.id AS photograph FROM chosen c"
        " LEFT JOIN photographs p USING (sha256) WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = p.id"
        " AND model IN (SELECT id FROM wanted)) < (SELECT COUNT(*) FROM wanted) ORDER BY c.path"
    )
