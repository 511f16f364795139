"""What devices have told, as a table: their uploads become Parquet in the repository, each line once; DuckDB reads it.

A device may write whatever it likes into its own folder: a line that is not understood costs that upload, and no other.
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
MAX_LINE_BYTES = 4 * 2**20  # 20,000 classes take under 1 MB; DuckDB reads JSON objects of 16 MB at most
AT_ONCE, BYTES_AT_ONCE = 256, 2 * MAX_UPLOAD_BYTES  # uploads that are read together, and held in memory

_UPLOAD = re.compile(rf"{USAGE}/[a-z0-9][a-z0-9_.-]*/[A-Za-z0-9_.-]+\.jsonl\.gz")  # no wildcard, which storages expand
_GZIP = 16 + zlib.MAX_WBITS
_DECODER = msgspec.json.Decoder(Usage)
_KEY = "device, series, sequence"
_DAY = "strftime(make_timestamp(CAST(uploaded_s * 1e6 AS BIGINT)), '%Y-%m-%d')"  # UTC


class Row(Struct, frozen=True):
    """A line as it was read. uploaded_s: seconds since 1970, when the storage has it that `upload` was written."""

    line: Usage
    upload: str
    uploaded_s: float


class Metadata:
    """The table `usage`: a column for each field of Usage, `upload` and `uploaded_s`; a row for each line."""

    def __init__(self, storage: Storage) -> None:
        """Open what is there already; one at a time may gather. Raises RepositoryError."""
        self._storage = storage
        self._tables = duckdb.connect()
        if storage.filesystem is not None:
            self._tables.register_filesystem(storage.filesystem)
        self._open()

    def gather(self) -> dict[str, str]:
        """Take up every new upload, and return why some were skipped, by their names. Raises RepositoryError."""
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
        """Have `usage` be all that lies in the repository."""
        columns = [f'NULL::{_sql(field.type)} AS "{field.encode_name}"' for field in _fields(Usage)]
        parts = ", ".join(map(self._quoted, self._storage.names(PARQUET)))
        there = f" UNION ALL BY NAME FROM read_parquet([{parts}], union_by_name = true)" if parts else ""
        empty = f"SELECT {', '.join(columns)}, NULL::VARCHAR AS upload, NULL::DOUBLE AS uploaded_s WHERE false"
        self.query(f"CREATE OR REPLACE VIEW usage AS {empty}{there}")

    def _add(self, lines: Path, part: Path) -> None:
        """Add the lines that are not there yet: those that were uploaded on one day to the file of that day."""
        columns = {field.encode_name: _sql(field.type) for field in _fields(Row)}
        self._tables.read_json(str(lines), columns=columns, format="newline_delimited").create_view(
            "told", replace=True
        )
        self.query(
            f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT DISTINCT ON ({_KEY}) * FROM (SELECT unnest(line), upload, "
            f"uploaded_s FROM told) ANTI JOIN usage USING ({_KEY}) ORDER BY {_KEY}, uploaded_s"
        )
        there = self._storage.names(PARQUET)
        for (day,) in self.query(f"SELECT DISTINCT {_DAY} FROM fresh"):
            name = f"{PARQUET}/{day}.parquet"
            old = f"UNION ALL BY NAME FROM {self._quoted(name)}" if name in there else ""
            rows = f"SELECT * FROM fresh WHERE {_DAY} = '{day}' {old}"
            self.query(f"COPY ({rows}) TO '{part}' (FORMAT parquet, COMPRESSION zstd)")
            self._storage.write(name, part.read_bytes())
        self._open()

    def _quoted(self, name: str) -> str:
        return "'" + self._storage.address(name).replace("'", "''") + "'"

    def _rows(self, uploads: Sequence[Stored], skipped: dict[str, str]) -> Iterator[bytes]:
        """Yield each line of the uploads as a Row in JSON."""
        for batch in _batches(uploads):
            small = [name for name, one in batch.items() if one.bytes <= MAX_UPLOAD_BYTES and _UPLOAD.fullmatch(name)]
            contents = self._storage.contents(small) if small else {}
            for name, one in batch.items():
                try:
                    yield from _lines(one, contents.pop(name, None))
                except ValueError as fault:  # noqa: PERF203  # the others are taken up all the same
                    skipped[name] = str(fault)


def _batches(uploads: Sequence[Stored]) -> Iterator[dict[str, Stored]]:
    """Group uploads that may be held in memory together, by their names."""
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
    """Return the lines of an upload as Rows in JSON; raises ValueError that says what is wrong with it."""
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


def _fields(kind: type[Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info.fields


_SQL: dict[type[inspect.Type], str] = {
    inspect.BoolType: "BOOLEAN",
    inspect.IntType: "BIGINT",
    inspect.FloatType: "DOUBLE",
    inspect.StrType: "VARCHAR",
    inspect.LiteralType: "VARCHAR",
}


def _sql(kind: inspect.Type) -> str:
    """Return DuckDB's type of what msgspec reads."""
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
