"""The SQLite file of a recording: its tables, how it is opened, and a store that commits once a second."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType

import msgspec

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.record.conditions import Conditions
from jetsel.features import table_hash
from jetsel.zoo import Family, Model

FORMAT = "jetsel-recording"
VERSION = 5

_PATIENCE_S = 1.0  # longest wait for another process that has the file open

# photographs.sha256: see Cut.key; source: sha256 of the file; near_hash: see perceptual_hash. features: float32; logits
# and embedding: float16; all little-endian. conditions.unmetered: why that run metered no energy. energies: of one run,
# means over windows of repeated runs; model is NULL for the extraction of features; mean_mj is NULL if `reason` says
# why; scatter_mj and idle_mj: see metering.py, sensor_mj: see load.py. dropped: models whose recording was stopped.
# files: hashes by size and date, so that no file is hashed twice.
_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL)",
    """CREATE TABLE photographs (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL, sha256 TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
        cut TEXT NOT NULL, class INTEGER, label TEXT,
        width_px INTEGER NOT NULL, height_px INTEGER NOT NULL, near_hash INTEGER NOT NULL, features BLOB NOT NULL,
        decode_ms REAL NOT NULL, features_ms REAL NOT NULL)""",
    """CREATE TABLE predictions (
        photograph INTEGER NOT NULL REFERENCES photographs ON DELETE CASCADE,
        model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
        logits BLOB NOT NULL, embedding BLOB, PRIMARY KEY (photograph, model))""",
    "CREATE INDEX predictions_of_model ON predictions (model)",
    """CREATE TABLE conditions (
        id INTEGER PRIMARY KEY, started TEXT NOT NULL, found TEXT NOT NULL, noisy TEXT, unmetered TEXT)""",
    """CREATE TABLE timings (
        photograph INTEGER NOT NULL REFERENCES photographs ON DELETE CASCADE,
        model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
        conditions INTEGER NOT NULL REFERENCES conditions,
        median_ms REAL NOT NULL, repeats INTEGER NOT NULL,
        PRIMARY KEY (photograph, model))""",
    "CREATE INDEX timings_of_model ON timings (model)",
    """CREATE TABLE energies (
        photograph INTEGER NOT NULL REFERENCES photographs ON DELETE CASCADE,
        model INTEGER REFERENCES models ON DELETE CASCADE,
        conditions INTEGER NOT NULL REFERENCES conditions,
        mean_mj REAL, scatter_mj REAL, sensor_mj REAL, idle_mj REAL, mean_ms REAL,
        windows INTEGER NOT NULL, runs INTEGER NOT NULL, reason TEXT)""",
    "CREATE UNIQUE INDEX energies_of ON energies (photograph, COALESCE(model, 0))",
    "CREATE TABLE dropped (model INTEGER PRIMARY KEY REFERENCES models ON DELETE CASCADE, reason TEXT NOT NULL)",
    "CREATE TABLE skipped (path TEXT PRIMARY KEY, reason TEXT NOT NULL)",
    "CREATE TABLE files (path TEXT PRIMARY KEY, size_bytes INTEGER, mtime_ns INTEGER, sha256 TEXT NOT NULL)",
)

_REPAIRS = {
    "not a database": "is not a recording of jetsel; name another file",
    "locked": "another process records into it; wait until it has ended",
    "full": "the disk is full; free some space and run the same command again, it continues where it stopped",
    "readonly": "is not writable; name a file in a folder of your own",
    "unable to open": "cannot be opened; name a file in a folder that exists and is yours",
    "malformed": "is damaged; delete it and record again",
}

_MISMATCHES = {
    "family": "for family {recorded!r}, not {due!r}",
    "labels_sha256": "with another labels file of the family",
    "feature_table": "with other features than this jetsel computes",
    "decode_px": "for inputs of at most {recorded} pixels, but the family has {due}",
    "features_px": "with features of {recorded} pixels, but {due} are required",
}


@contextmanager
def convert_sqlite_errors(path: Path) -> Iterator[None]:
    """Within the block, convert SQLite's errors into CalibrationErrors that name the file and the repair."""
    try:
        yield
    except sqlite3.Error as fault:
        repair = next((repair for words, repair in _REPAIRS.items() if words in str(fault)), None)
        raise CalibrationError(f"{path}: {repair or f'{fault}; check its disk, or delete it, record again'}") from fault


def create_or_open(path: Path, family: Family, features_px: int) -> sqlite3.Connection:
    """Open a recording of this family for writing, with an exclusive lock; create the file if there is none.

    features_px: largest number of pixels that features read. Raises CalibrationError if the file is in use, is no
    recording, or was made by another version, for another family, or with other settings.
    """
    expected_meta = _expected_meta(family) | {"features_px": str(features_px)}
    with convert_sqlite_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            is_new = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
            if not is_new:
                _check_meta(connection, path, expected_meta)  # before anything is written, as the file may be foreign
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing, a power cut at most the last second
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("BEGIN EXCLUSIVE")
            if is_new:
                for table in _TABLES:
                    connection.execute(table)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", expected_meta.items())
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def open_to_read(path: Path, family: Family) -> Iterator[sqlite3.Connection]:
    """Open a recording of this family for reading; close it at the end of the block.

    SQLite writes only to recover a file whose writer was killed; a read-only file works too. Raises CalibrationError if
    the file is missing or refused, or if the block reads data that jetsel did not write.
    """
    if not path.is_file():
        raise CalibrationError(f"{path}: there is no recording; record images first")
    with convert_sqlite_errors(path), closing(sqlite3.connect(path, timeout=_PATIENCE_S)) as connection:
        try:
            _check_meta(connection, path, _expected_meta(family))
            yield connection
        except (ValueError, TypeError, LookupError, OverflowError, msgspec.MsgspecError) as fault:
            repair = "delete it and record again"
            raise CalibrationError(f"{path}: contains data that jetsel did not write ({fault}); {repair}") from fault


def _expected_meta(family: Family) -> dict[str, str]:
    return {
        "format": FORMAT,
        "version": str(VERSION),
        "family": family.name,
        "labels_sha256": family.labels.sha256,
        "feature_table": table_hash(),
        "decode_px": str(family.decode_px),
    }


def _check_meta(connection: sqlite3.Connection, path: Path, expected_meta: Mapping[str, str]) -> None:
    columns = connection.execute("SELECT name FROM pragma_table_info('meta')").fetchall()
    meta = dict(connection.execute("SELECT * FROM meta")) if columns == [("key",), ("value",)] else {}
    if meta.get("format") != FORMAT:
        raise CalibrationError(f"{path}: is not a recording of jetsel; name another file")
    if meta["version"] != str(VERSION):
        is_old = meta["version"] in ("1", "2", "3", "4")
        repair = "delete it and record again" if is_old else "upgrade jetsel, or record into another file"
        raise CalibrationError(f"{path}: is of format {meta['version']} and this jetsel reads {VERSION}; {repair}")
    for key, expected in expected_meta.items():
        if meta[key] != expected:
            mismatch = _MISMATCHES[key].format(recorded=meta[key], due=expected)
            raise CalibrationError(f"{path}: was recorded {mismatch}; record into another file")


COMMIT_EVERY_S = 1.0


class Store:
    """A recording that is open for writing, from one thread. Its methods raise sqlite3.Error.

    The temporary table `wanted` holds the models of this run, and `chosen` (see `list_tasks`) its images.
    """

    def __init__(self, path: Path, family: Family, features_px: int) -> None:
        """Open or create the file, as `create_or_open` does, and begin a transaction."""
        self.connection = create_or_open(path, family, features_px)
        self.connection.execute("BEGIN")
        self._began = time.monotonic()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not isinstance(error, sqlite3.Error):  # after any other error, the work done so far is kept
                self.connection.execute("COMMIT")
                self.connection.execute("PRAGMA journal_mode=DELETE")  # leaves one file, which can be read anywhere
        finally:
            self.connection.close()

    def commit_when_due(self) -> None:
        """Commit if the transaction is older than COMMIT_EVERY_S."""
        if time.monotonic() - self._began >= COMMIT_EVERY_S:
            self.connection.execute("COMMIT")
            self.connection.execute("BEGIN")
            self._began = time.monotonic()

    def set_models(self, models: Sequence[Model], cheapest: Model, always_recorded: Collection[str] = ()) -> None:
        """Choose the models to record; what is recorded of other weights with the same name is deleted.

        cheapest: the model whose embeddings are kept; its predictions without an embedding are deleted, to be repeated.
        always_recorded: models to resume even if an earlier run dropped them.
        """
        execute = self.connection.execute
        for model in models:
            name, identity = model.manifest.name, model.manifest.identity
            execute("DELETE FROM models WHERE name = ? AND identity != ?", (name, identity))
            execute("INSERT OR IGNORE INTO models (name, identity) VALUES (?, ?)", (name, identity))
        names = [model.manifest.name for model in models]
        for name in always_recorded:
            execute("DELETE FROM dropped WHERE model IN (SELECT id FROM models WHERE name = ?)", (name,))
        execute(
            "CREATE TEMP TABLE wanted AS SELECT id, name FROM models WHERE name IN (SELECT value FROM json_each(?))"
            " AND id NOT IN (SELECT model FROM dropped)",
            (msgspec.json.encode(names).decode(),),
        )
        if cheapest.manifest.embedding_width is not None:
            execute(
                "DELETE FROM predictions WHERE embedding IS NULL AND model IN (SELECT id FROM models WHERE name = ?)",
                (cheapest.manifest.name,),
            )

    def drop_model(self, model: str, reason: str) -> None:
        """Stop recording this model and store why; its predictions so far are kept."""
        self.connection.execute("INSERT INTO dropped SELECT id, ? FROM wanted WHERE name = ?", (reason, model))
        self.connection.execute("DELETE FROM wanted WHERE name = ?", (model,))

    def begin_run(self, conditions: Conditions) -> int:
        """Store this run's conditions and return their id; delete times and energies measured on other machines."""
        rows = self.connection.execute(
            "SELECT id, found FROM conditions WHERE id IN"
            " (SELECT conditions FROM timings UNION SELECT conditions FROM energies)"
        ).fetchall()
        for conditions_id, conditions_json in rows:
            if msgspec.json.decode(conditions_json, type=Conditions).machine != conditions.machine:
                self.connection.execute("DELETE FROM timings WHERE conditions = ?", (conditions_id,))
                self.connection.execute("DELETE FROM energies WHERE conditions = ?", (conditions_id,))
        text = msgspec.json.encode(conditions).decode()
        cursor = self.connection.execute(
            "INSERT INTO conditions (started, found) VALUES (?, ?)", (conditions.started, text)
        )
        return int(cursor.lastrowid or 0)

    def models_missing_in(self, table: str, image_id: int | None) -> tuple[str, ...]:
        """Return this run's models that have no row in `table` for an image. image_id: None if the image is new."""
        names = self.connection.execute(
            "SELECT name FROM wanted WHERE id NOT IN"
            f" (SELECT model FROM {table} WHERE photograph IS ? AND model NOT NULL) ORDER BY name",
            (image_id,),
        )
        return tuple(name for (name,) in names)

    def add_skipped(self, skipped: Iterable[tuple[Path, str]]) -> None:
        """List files in the recording as skipped, each with the reason."""
        rows = ((str(path), reason) for path, reason in skipped)
        self.connection.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?)", rows)
