"""One recording that is being written: a transaction a second, so that a kill loses at most the last one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from jetsel.calibrate.record.conditions import Conditions
from jetsel.calibrate.record.schema import create_or_open
from jetsel.zoo import Family, Model

COMMIT_EVERY_S = 1.0


class Store:
    """An open recording. Used from one thread; SQLite's own errors come out, `schema.faults` words them."""

    def __init__(self, path: Path, family: Family, features_px: int) -> None:
        """Open or make the file; raises CalibrationError where it is refused."""
        self.connection = create_or_open(path, family, features_px)
        self.connection.execute("BEGIN")
        self._began = time.monotonic()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not isinstance(error, sqlite3.Error):  # what was done before another error stays
                self.connection.execute("COMMIT")
                self.connection.execute("PRAGMA journal_mode=DELETE")  # one file, which can be read anywhere
        finally:
            self.connection.close()

    def commit_when_due(self) -> None:
        """Commit where the transaction is a second old."""
        if time.monotonic() - self._began >= COMMIT_EVERY_S:
            self.connection.execute("COMMIT")
            self.connection.execute("BEGIN")
            self._began = time.monotonic()

    def set_models(self, models: Sequence[Model], cheapest: Model) -> None:
        """Take the models in; what other weights of the same name said is dropped.

        cheapest: the one whose embeddings are kept; its predictions without one are dropped to be made again.
        """
        execute = self.connection.execute
        for model in models:
            name, identity = model.manifest.name, model.manifest.identity
            execute("DELETE FROM models WHERE name = ? AND identity != ?", (name, identity))
            execute("INSERT OR IGNORE INTO models (name, identity) VALUES (?, ?)", (name, identity))
        names = [model.manifest.name for model in models]
        execute(
            "CREATE TEMP TABLE wanted AS SELECT id, name FROM models WHERE name IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(names).decode(),),
        )
        if cheapest.manifest.embedding_width is not None:
            execute(
                "DELETE FROM predictions WHERE embedding IS NULL AND model IN (SELECT id FROM models WHERE name = ?)",
                (cheapest.manifest.name,),
            )

    def begin(self, conditions: Conditions) -> int:
        """Note this run's conditions; what was timed or metered on another machine is dropped. Returns its id."""
        rows = self.connection.execute(
            "SELECT id, found FROM conditions WHERE id IN"
            " (SELECT conditions FROM timings UNION SELECT conditions FROM energies)"
        ).fetchall()
        for number, found in rows:
            if msgspec.json.decode(found, type=Conditions).machine != conditions.machine:
                self.connection.execute("DELETE FROM timings WHERE conditions = ?", (number,))
                self.connection.execute("DELETE FROM energies WHERE conditions = ?", (number,))
        text = msgspec.json.encode(conditions).decode()
        done = self.connection.execute(
            "INSERT INTO conditions (started, found) VALUES (?, ?)", (conditions.started, text)
        )
        return int(done.lastrowid or 0)

    def missing(self, what: str, photograph: int | None) -> tuple[str, ...]:
        """Return the models that lack `what`, a table by photograph and model, of a photograph; None for a new one."""
        found = self.connection.execute(
            "SELECT name FROM wanted WHERE id NOT IN"
            f" (SELECT model FROM {what} WHERE photograph IS ? AND model NOT NULL) ORDER BY name",
            (photograph,),
        )
        return tuple(name for (name,) in found)

    def skip(self, skipped: Iterable[tuple[Path, str]]) -> None:
        """List files that are left out."""
        rows = ((str(path), reason) for path, reason in skipped)
        self.connection.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?)", rows)
