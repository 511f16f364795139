"""Log records as the daemon's code makes them, and a reader of the journal's native protocol."""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import struct
from pathlib import Path
from typing import Any

from jetsel.events import event


def record(words: str, *args: object, level: int = logging.INFO, name: str = "ready", **fields: object) -> Any:
    logger = logging.getLogger("jetsel.test")
    return logger.makeRecord(logger.name, level, __file__, 7, words, args, None, "func", event(name, **fields))


def read_entry(data: bytes) -> dict[str, list[bytes]]:
    """The fields of one entry, by https://systemd.io/JOURNAL_NATIVE_PROTOCOL; fails where it is not well-formed."""
    found: dict[str, list[bytes]] = {}
    while data:
        line, end, rest = data.partition(b"\n")
        assert end, "the last field has no end"
        if b"=" in line:
            name, _, value = line.partition(b"=")
        else:
            name = line
            (size,) = struct.unpack_from("<Q", rest)
            value, rest = rest[8 : 8 + size], rest[8 + size :]
            assert len(value) == size
            assert rest[:1] == b"\n", "a value's length is wrong"
            rest = rest[1:]
        text = name.decode("ascii")
        assert text.replace("_", "").isalnum(), text
        assert text == text.upper()
        assert text[0].isalpha(), "the journal keeps what begins with _ for itself"
        assert len(text) <= 64
        found.setdefault(text, []).append(value)
        data = rest
    return found


class JournalSocket:
    """The journal's end of its socket."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(20)

    def receive(self) -> tuple[dict[str, list[bytes]], int | None]:
        """The next entry, and the seals of the file that it came in, None where it came as a datagram."""
        data, fds, _, _ = socket.recv_fds(self._socket, 1 << 20, 4)
        if not fds:
            return read_entry(data), None
        assert data == b"", "a payload and a file are not permitted together"
        (fd,) = fds
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        with os.fdopen(fd, "rb") as file:
            file.seek(0)  # the journal maps it: where its writer stands does not matter
            return read_entry(file.read()), seals

    def entry(self) -> dict[str, list[bytes]]:
        return self.receive()[0]

    @property
    def is_empty(self) -> bool:
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(20)
        return False

    def close(self) -> None:
        self._socket.close()
        Path(self.path).unlink()
