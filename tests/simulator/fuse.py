"""The few requests of the kernel's FUSE protocol that a tree of sensor files needs, answered now or later.

Layouts and numbers: include/uapi/linux/fuse.h, protocol 7.31 (later kernels speak it). Nothing is cached: attributes
and names are valid for no time, and files are opened for direct I/O, so each pread at offset 0 asks anew, as in sysfs
each runs the driver's show().
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tests.simulator.agenda import Agenda

MINOR = 31  # of the protocol 7.x
PAGE = 4096  # what sysfs says is the size of each file, and the most that one read returns
_BUFFER = 1 << 17  # the kernel refuses a smaller buffer than its longest request: max_write and a header
_DIRECT_IO = 1

LOOKUP, FORGET, GETATTR, SETATTR, READLINK, OPEN, READ, WRITE = 1, 2, 3, 4, 5, 14, 15, 16
STATFS, RELEASE, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT = 17, 18, 26, 27, 28, 29, 36
DESTROY, BATCH_FORGET = 38, 42

_IN = struct.Struct("<IIQQIIIHH")  # length, opcode, unique, node, uid, gid, pid, extension, padding
_OUT = struct.Struct("<IiQ")  # length, -errno, unique
_INIT_OUT = struct.Struct("<IIIIHHIIHHI7I")
_ATTR = struct.Struct("<6Q3I7I")
_ENTRY = struct.Struct("<QQQQII")
_ATTR_OUT = struct.Struct("<QII")
_OPEN_OUT = struct.Struct("<QII")
_READ_IN = struct.Struct("<QQI")  # handle, offset, size; the rest is not needed
_WRITE_OUT = struct.Struct("<II")
_DIRENT = struct.Struct("<QQII")
_STATFS_OUT = struct.Struct("<5Q10I")


@dataclass(frozen=True)
class Later:
    """An answer that is given at `due_ns` (CLOCK_MONOTONIC) and worked out then; `make` may raise OSError."""

    due_ns: int
    make: Callable[[], bytes]


class Handle(Protocol):
    """An open file. All may raise OSError, whose errno the reader gets."""

    def show(self) -> bytes | Later:
        """Return the whole content, anew for each read at offset 0."""

    def store(self, data: bytes) -> None:
        """Take what was written."""


class Files(Protocol):
    """A tree by paths relative to its root (""). All may raise OSError."""

    def attributes(self, path: str) -> tuple[int, int]:
        """Return mode (st_mode) and size in bytes."""

    def names(self, path: str) -> list[str]: ...

    def target(self, path: str) -> str: ...

    def open(self, path: str) -> Handle: ...


class Server:
    """Answers the requests of one connection; run `handle` whenever the descriptor is readable."""

    def __init__(self, connection: int, files: Files, agenda: Agenda) -> None:
        self._connection = connection
        self._files = files
        self._agenda = agenda
        self._paths = {1: ""}  # node -> path; the tree is small, so nodes are never forgotten
        self._nodes = {"": 1}
        self._handles: dict[int, tuple[Handle, bytearray]] = {}  # and what the last read at offset 0 returned
        self._listings: dict[int, list[str]] = {}
        self._last_handle = 0
        self._waiting: set[int] = set()  # requests that are answered later
        self._answers: dict[int, Callable[[int, memoryview], bytes | Later | None]] = {
            INIT: self._init, LOOKUP: self._lookup, GETATTR: self._getattr, SETATTR: self._getattr,
            READLINK: self._readlink, OPEN: self._open, WRITE: self._write, STATFS: self._statfs,
            RELEASE: self._release, OPENDIR: self._opendir, READDIR: self._readdir, RELEASEDIR: self._releasedir,
            FORGET: self._forget, BATCH_FORGET: self._forget, INTERRUPT: self._interrupt,
        }  # fmt: skip
        self._read_buffer = bytearray(_BUFFER)

    def handle(self) -> bool:
        """Answer one request; False when the file system was unmounted."""
        try:
            length = os.readv(self._connection, [self._read_buffer])
        except (BlockingIOError, InterruptedError, FileNotFoundError):  # the request went away again
            return True
        except OSError as error:
            if error.errno == errno.ENODEV:
                return False
            raise
        _, opcode, unique, node, *_ = _IN.unpack_from(self._read_buffer)
        body = memoryview(self._read_buffer)[_IN.size : length]
        if opcode == DESTROY:
            return False
        answer = self._read if opcode == READ else self._answers.get(opcode)
        if answer is None:
            self._reply(unique, error=errno.ENOSYS)
            return True
        try:
            found = answer(node, body)
        except OSError as error:
            self._reply(unique, error=error.errno or errno.EIO)
            return True
        if isinstance(found, Later):
            self._postpone(unique, found)
        elif found is not None:
            self._reply(unique, found)
        return True

    def _postpone(self, unique: int, later: Later) -> None:
        def answer() -> None:
            if unique not in self._waiting:
                return
            self._waiting.remove(unique)
            try:
                self._reply(unique, later.make())
            except OSError as error:
                self._reply(unique, error=error.errno or errno.EIO)

        self._waiting.add(unique)
        self._agenda.at(later.due_ns, answer)

    def _reply(self, unique: int, body: bytes = b"", *, error: int = 0) -> None:
        try:
            os.writev(self._connection, [_OUT.pack(_OUT.size + len(body), -error, unique), body])
        except FileNotFoundError:  # whoever asked was killed meanwhile
            return

    def _init(self, node: int, body: memoryview) -> bytes:
        read_ahead = struct.unpack_from("<3I", body)[2]
        return _INIT_OUT.pack(7, MINOR, read_ahead, 0, 16, 12, PAGE, 1, 0, 0, 0, *[0] * 7)

    def _lookup(self, node: int, body: memoryview) -> bytes:
        parent = self._paths[node]
        name = bytes(body).rstrip(b"\0").decode()
        path = f"{parent}/{name}" if parent else name
        mode, size = self._files.attributes(path)
        found = self._nodes.setdefault(path, len(self._nodes) + 1)
        self._paths[found] = path
        return _ENTRY.pack(found, 0, 0, 0, 0, 0) + _attributes(found, mode, size)

    def _getattr(self, node: int, body: memoryview) -> bytes:
        mode, size = self._files.attributes(self._paths[node])
        return _ATTR_OUT.pack(0, 0, 0) + _attributes(node, mode, size)

    def _readlink(self, node: int, body: memoryview) -> bytes:
        return self._files.target(self._paths[node]).encode()

    def _open(self, node: int, body: memoryview) -> bytes:
        self._last_handle += 1
        self._handles[self._last_handle] = (self._files.open(self._paths[node]), bytearray())
        return _OPEN_OUT.pack(self._last_handle, _DIRECT_IO, 0)

    def _read(self, node: int, body: memoryview) -> bytes | Later:
        number, offset, size = _READ_IN.unpack_from(body)
        handle, shown = self._handles[number]
        if offset:  # the rest of what was shown, as seq_file keeps it
            return bytes(shown[offset : offset + size])
        content = handle.show()
        if isinstance(content, Later):
            make = content.make

            def keep() -> bytes:
                shown[:] = make()
                return bytes(shown[:size])

            return Later(content.due_ns, keep)
        shown[:] = content
        return content[:size]

    def _write(self, node: int, body: memoryview) -> bytes:
        number, _, size = _READ_IN.unpack_from(body)
        self._handles[number][0].store(bytes(body[40 : 40 + size]))  # fuse_write_in is 40 bytes
        return _WRITE_OUT.pack(size, 0)

    def _release(self, node: int, body: memoryview) -> bytes:
        del self._handles[struct.unpack_from("<Q", body)[0]]
        return b""

    def _opendir(self, node: int, body: memoryview) -> bytes:
        self._last_handle += 1
        self._listings[self._last_handle] = [".", "..", *self._files.names(self._paths[node])]
        return _OPEN_OUT.pack(self._last_handle, 0, 0)

    def _readdir(self, node: int, body: memoryview) -> bytes:
        number, offset, size = _READ_IN.unpack_from(body)
        entries = bytearray()
        for at, name in enumerate(self._listings[number][offset:], offset + 1):
            raw = name.encode()
            entry = _DIRENT.pack(2**32 - 1, at, len(raw), 0) + raw  # inode and type unknown: the reader asks
            entry += bytes(-len(entry) % 8)
            if len(entries) + len(entry) > size:
                break
            entries += entry
        return bytes(entries)

    def _releasedir(self, node: int, body: memoryview) -> bytes:
        del self._listings[struct.unpack_from("<Q", body)[0]]
        return b""

    def _statfs(self, node: int, body: memoryview) -> bytes:
        return _STATFS_OUT.pack(0, 0, 0, 0, 0, PAGE, 255, PAGE, *[0] * 7)

    def _forget(self, node: int, body: memoryview) -> None:
        """No answer is expected."""

    def _interrupt(self, node: int, body: memoryview) -> None:
        unique = struct.unpack_from("<Q", body)[0]
        if unique in self._waiting:
            self._waiting.remove(unique)
            self._reply(unique, error=errno.EINTR)


def _attributes(node: int, mode: int, size: int) -> bytes:
    now_s = int(time.time())
    links = 2 if stat.S_ISDIR(mode) else 1
    return _ATTR.pack(node, size, 0, now_s, now_s, now_s, 0, 0, 0, mode, links, os.getuid(), os.getgid(), 0, PAGE, 0)
