"""A table of all reports: uploads become Parquet in the repository, each line once, and DuckDB reads it.

A device may write anything to its own folder, so an unreadable line costs only its upload.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import duckdb
import msgspec
from msgspec import Struct, inspect

from jetsel.addons.fleet.storage import Storage, Stored
from jetsel.addons.fleet.usage import USAGE, Usage
from jetsel.base.errors import RepositoryError

PARQUET = "parquet"
MAX_UPLOAD_BYTES, MAX_EXPANDED_BYTES = 16 * 2**20, 64 * 2**20
MAX_LINE_BYTES = 4 * 2**20  # 20,000 classes take under 1 MB; DuckDB reads JSON objects up to 16 MB
AT_ONCE, BYTES_AT_ONCE = 256, 2 * MAX_UPLOAD_BYTES  # uploads that are read together, and held in memory

_UPLOAD = re.compile(rf"{USAGE}/[a-z0-9][a-z0-9_.-]*/[A-Za-z0-9_.-]+\.jsonl\.gz")  # no wildcards: storages expand them
_GZIP = 16 + zlib.MAX_WBITS
_DECODER = msgspec.json.Decoder(Usage)
_KEY = "device, series, sequence"
_DAY = "strftime(make_timestamp(CAST(uploaded_s * 1e6 AS BIGINT)), '%Y-%m-%d')"  # UTC


class Row(Struct, frozen=True):
    """A line as read. uploaded_s: when the storage says that `upload` was written, in seconds since 1970."""

    line: Usage
    upload: str
    uploaded_s: float


class Metadata:
    """The table `usage`: a column for each field of Usage, `upload` and `uploaded_s`; a row for each line."""

    def __init__(self, storage: Storage) -> None:
        """Open the existing table; only one process at a time may call `gather`. Raises RepositoryError."""
        self._storage = storage
        self._tables = duckdb.connect()
        if storage.filesystem is not None:
            self._tables.register_filesystem(storage.filesystem)
        self._open()

    def gather(self) -> dict[str, str]:
        """Add every new upload; return why some were skipped, by name. Raises RepositoryError."""
        uploads = dict(self.query("SELECT upload, max(uploaded_s) FROM usage GROUP BY upload"))
        fresh = [one for one in self._storage.stored(USAGE) if one.modified_s != uploads.get(one.name)]
        skipped: dict[str, str] = {}
        with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
            lines = Path(scratch) / "lines.jsonl"
            with lines.open("wb") as out:
                for row in self._rows(fresh, skipped):
                    out.write(row + b"\n")
            if lines.stat().st_size:
                self._add(lines, Path(scratch) / "part.parquet")
        return skipped

    def query(self, sql: str, *values: object) -> list[Any]:
        """Return the rows of a query on `usage`; `?` stands for each value. Raises RepositoryError."""
        try:
            return self._tables.execute(sql, values).fetchall()
        except (duckdb.Error, OSError) as fault:
            raise RepositoryError(
                f"{PARQUET}: cannot be read ({fault}): remove that folder; it is rebuilt from {USAGE}"
            ) from fault

    def _open(self) -> None:
        """Make `usage` a view of all Parquet files in the repository."""
        columns = [f'NULL::{kind} AS "{name}"' for name, kind in _columns(Usage).items()]
        parts = ", ".join(map(self._quoted, self._storage.names(PARQUET)))
        there = f" UNION ALL BY NAME FROM read_parquet([{parts}], union_by_name = true)" if parts else ""
        empty = f"SELECT {', '.join(columns)}, NULL::VARCHAR AS upload, NULL::DOUBLE AS uploaded_s WHERE false"
        self.query(f"CREATE OR REPLACE VIEW usage AS {empty}{there}")

    def _add(self, lines: Path, part: Path) -> None:
        """Add new lines to the Parquet file of the day of their upload."""
        rows = self._tables.read_json(str(lines), columns=_columns(Row), format="newline_delimited")
        rows.create_view("new_rows", replace=True)
        self.query(
            f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT DISTINCT ON ({_KEY}) * FROM (SELECT unnest(line), upload, "
            f"uploaded_s FROM new_rows) ANTI JOIN usage USING ({_KEY}) ORDER BY {_KEY}, uploaded_s"
        )
        there = self._storage.names(PARQUET)
        for (day,) in self.query(f"SELECT DISTINCT {_DAY} FROM fresh"):
            name = f"{PARQUET}/{day}.parquet"
            old = f"UNION ALL BY NAME FROM {self._quoted(name)}" if name in there else ""
            all_of_day = f"SELECT * FROM fresh WHERE {_DAY} = '{day}' {old}"
            self.query(f"COPY ({all_of_day}) TO '{part}' (FORMAT parquet, COMPRESSION zstd)")
            self._storage.write(name, part.read_bytes())
        self._open()

    def _quoted(self, name: str) -> str:
        return "'" + self._storage.address(name).replace("'", "''") + "'"

    def _rows(self, uploads: Sequence[Stored], skipped: dict[str, str]) -> Iterator[bytes]:
        """Yield each line of the uploads as a Row in JSON; note the uploads that are skipped."""
        for batch in _batches(uploads):
            small = [name for name, one in batch.items() if one.bytes <= MAX_UPLOAD_BYTES and _UPLOAD.fullmatch(name)]
            contents = self._storage.contents(small) if small else {}
            for name, one in batch.items():
                try:
                    yield from _lines(one, contents.pop(name, None))
                except ValueError as fault:  # noqa: PERF203  # continue with the others
                    skipped[name] = str(fault)


def _batches(uploads: Sequence[Stored]) -> Iterator[dict[str, Stored]]:
    """Yield groups of uploads that fit into memory together, by name."""
    batch: dict[str, Stored] = {}
    held = 0
    for one in uploads:
        if batch and (len(batch) == AT_ONCE or held + one.bytes > BYTES_AT_ONCE):
            yield batch
            batch, held = {}, 0
        batch[one.name] = one
        held += one.bytes
    if batch:
        yield batch


def _lines(upload: Stored, content: bytes | None) -> list[bytes]:
    """Return the lines of an upload as Rows in JSON; raises ValueError with its fault."""
    if content is None:
        raise ValueError(
            f"it cannot be read, has more than {MAX_UPLOAD_BYTES} bytes, or does not have the name of an upload"
        )
    expanding = zlib.decompressobj(_GZIP)
    try:
        plain = expanding.decompress(content, MAX_EXPANDED_BYTES)
    except zlib.error as fault:
        raise ValueError(f"it is not a gzip file: {fault}") from None
    if not expanding.eof:
        raise ValueError(f"it is truncated, or expands to more than {MAX_EXPANDED_BYTES} bytes")
    device, rows = PurePosixPath(upload.name).parent.name, []
    for text in filter(bytes.strip, plain.splitlines()):
        try:
            line = _DECODER.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
            raise ValueError(f"a line is not understood: {fault}") from None
        if line.device != device:
            raise ValueError("a line belongs to another device")
        rows.append(msgspec.json.encode(Row(line, upload.name, upload.modified_s)))
        if len(rows[-1]) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES} bytes")
    return rows


def _columns(kind: type[Struct]) -> dict[str, str]:
    """Return DuckDB's type for each field of a struct, by the field's name in JSON."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _sql(field.type) for field in info.fields}


_SQL: dict[type[inspect.Type], str] = {
    inspect.BoolType: "BOOLEAN",
    inspect.IntType: "BIGINT",
    inspect.FloatType: "DOUBLE",
    inspect.StrType: "VARCHAR",
    inspect.LiteralType: "VARCHAR",
}


def _sql(kind: inspect.Type) -> str:
    """Return DuckDB's type for a type of msgspec."""
    match kind:
        case inspect.StructType():
            fields = [f'"{field.encode_name}" {_sql(field.type)}' for field in kind.fields]
            return f"STRUCT({', '.join(fields)})"
        case inspect.VarTupleType():
            return f"{_sql(kind.item_type)}[]"
        case inspect.DictType():
            return f"MAP(VARCHAR, {_sql(kind.value_type)})"
        case inspect.UnionType():
            return next(_sql(one) for one in kind.types if not isinstance(one, inspect.NoneType))
    return _SQL[type(kind)]
