"""Log lines as the journal's entries: its native protocol over a datagram socket.

The protocol: https://systemd.io/JOURNAL_NATIVE_PROTOCOL. The names of fields are those of systemd.journal-fields(7),
and ours after JETSEL_.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
from array import array
from collections.abc import Iterable, Iterator, Mapping

from jetsel.daemon.logs.entry import Entry
from jetsel.daemon.logs.readable import TRACE

SOCKET = "/run/systemd/journal/socket"
IDENTIFIER = "jetsel"
PREFIX = "JETSEL_"

PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}  # syslog(3)

SEND_BUFFER_BYTES = 8 << 20  # asked for, so that a busy journal costs no line; what libsystemd asks for too
_F_ALL_SEALS = 0x0001 | 0x0002 | 0x0004 | 0x0008  # seal, shrink, grow, write: fcntl(2)


def is_connected(fd: int, environment: Mapping[str, str]) -> bool:
    """Whether the journal reads what is written there: $JOURNAL_STREAM names the file's device and inode.

    See systemd.exec(5): that the variable is set says nothing, as whoever started us may have turned stderr elsewhere.
    """
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def priority(level: int) -> int:
    """The priority of a level of logging; one between two of ours is the next less urgent."""
    return next((number for known, number in sorted(PRIORITIES.items(), reverse=True) if level >= known), 7)


def encode(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Put fields into the protocol's form: NAME=value, or where the value has a line's end its length and its bytes."""
    parts = []
    for name, value in pairs:
        data = value.encode("utf-8", "backslashreplace")
        if b"\n" in data:
            parts.append(b"%s\n%s%s\n" % (name.encode(), len(data).to_bytes(8, "little"), data))
        else:
            parts.append(b"%s=%s\n" % (name.encode(), data))
    return b"".join(parts)


def pairs_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """The fields of one entry. A field with several values stands there several times, which the journal allows."""
    record = entry.record
    yield "MESSAGE", "\n".join([entry.words, *(f"{TRACE}{line}" for line in entry.trace)])
    yield "PRIORITY", str(priority(record.levelno))
    yield "SYSLOG_IDENTIFIER", IDENTIFIER
    yield "LOGGER", record.name
    yield "THREAD_NAME", record.threadName or ""
    yield "CODE_FILE", record.pathname
    yield "CODE_LINE", str(record.lineno)
    yield "CODE_FUNC", record.funcName or ""
    yield f"{PREFIX}EVENT", entry.event
    for name, values in entry.fields.items():
        for value in values:
            yield f"{PREFIX}{name.upper()}", value


class Journal:
    """The journal's socket. It need not be there, nor stay: each entry is sent on its own."""

    def __init__(self, path: str = SOCKET) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    def send(self, data: bytes) -> bool:
        """Send one entry without waiting; False where the journal is not there or does not take it now."""
        try:
            try:
                self._socket.sendto(data, self._path)
            except OSError as error:
                if error.errno != errno.EMSGSIZE:
                    raise
                self._send_file(data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def _send_file(self, data: bytes) -> None:
        """Send what is too large for a datagram as a sealed file in memory: no payload, one descriptor."""
        fd = os.memfd_create("jetsel-log", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(data)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _F_ALL_SEALS)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [fd]))
            self._socket.sendmsg([], [rights], 0, self._path)
        finally:
            os.close(fd)
