"""Lines of usage that wait to be sent: bounded, the oldest goes first, each is sent once."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from jetsel.base.errors import RepositoryError
from jetsel.base.files import repair_of, replace
from jetsel.fleet.sinks import Sink
from jetsel.fleet.usage import Usage, usage_path

MOST_LINES = 500  # of one upload


class Spool:
    """A file of JSON lines, the oldest first; at most so many bytes."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path, self._most_bytes = path, most_bytes

    def add(self, line: Usage) -> int:
        """Append a line; return how many were dropped: damaged ones, and the oldest for it. Raises RepositoryError."""
        found = self._lines()
        lines = [*filter(_is_whole, found), msgspec.json.encode(line)]
        before = len(found) + 1
        while sum(map(len, lines)) + len(lines) > self._most_bytes and len(lines) > 1:
            del lines[0]
        self._write(lines)
        return before - len(lines)

    def send(self, sink: Sink) -> int:
        """Send all lines, each upload named by its first; return how many. Raises RepositoryError where the way breaks.

        What was sent and not yet taken off here is sent again under the same name, so that it counts once.
        """
        lines, sent = self._lines(), 0
        while lines:
            batch = lines[:MOST_LINES]
            name = usage_path(msgspec.json.decode(batch[0], type=Usage))
            sink.put(name, gzip.compress(b"\n".join(batch) + b"\n", mtime=0))
            lines, sent = lines[len(batch) :], sent + len(batch)
            self._write(lines)
        return sent

    def _lines(self) -> list[bytes]:
        try:
            return self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []

    def _write(self, lines: list[bytes]) -> None:
        try:
            replace(self._path, b"".join(line + b"\n" for line in lines))
        except OSError as fault:
            raise RepositoryError(f"{self._path}: not written ({fault.strerror}): {repair_of(fault)}") from fault


def _is_whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Usage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
