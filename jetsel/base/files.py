"""Single files: write, flush, replace, hash, read within a bound, read secrets, lock a folder."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from jetsel.base.errors import ConfigError

TEMPORARY = ".jetsel-"
"""Prefix of unfinished files; the next writer in the folder removes them."""

_CHUNK_BYTES = 1 << 20
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def flush(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to the disk (fsync(2)). Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Write a file and flush it; a crash may still lose its name until the folder is flushed. Raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Create or replace a file in one step; after a crash it has the whole old or the whole new content.

    mode: permissions of the file. Raises OSError.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        write(temporary, content)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush(path.parent)


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def open_regular(path: Path, folder: int | None = None) -> BufferedReader:
    """Open a regular file for reading. Raises OSError, also for a pipe or a device, which may never end.

    folder: descriptor of the folder that holds the file; links are then not followed.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe would wait for a writer
    descriptor = os.open(path, flags if folder is None else flags | os.O_NOFOLLOW, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "it is not a regular file", str(path))


def read_bounded(path: Path, at_most_bytes: int, folder: int | None = None) -> bytes:
    """Return a regular file's content. folder: as for `open_regular`. Raises OSError, EFBIG if the file is larger."""
    with open_regular(path, folder) as file:
        size = os.fstat(file.fileno()).st_size
        if size > at_most_bytes:
            raise OSError(errno.EFBIG, f"it exceeds the limit of {at_most_bytes} bytes", str(path))
        return file.read(size + 1)  # one byte more shows that the file grew meanwhile


@contextmanager
def locked(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on a folder during a `with` block; the kernel releases it if the process dies.

    waiting: called once if another process holds the lock, before this one waits. Raises OSError if the folder cannot
    be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def repair_of(fault: OSError, other_choice: str = "choose another folder") -> str:
    """Return advice for a failed write, to end an error message. other_choice: how to write to another place."""
    if fault.errno in _NO_SPACE:
        return "free some space there"
    if fault.errno in _NOT_ALLOWED:
        return f"run this as a user who may write there, or {other_choice}"
    return f"repair this, or {other_choice}"


_SECRET_BYTES = 4096


def read_secret(path: Path, setting: str) -> str:
    """Return the text of a file that holds a token or password.

    setting: name of the setting that gives the path. Raises ConfigError if the file is unreadable or readable for all.
    """
    try:
        mode = path.stat().st_mode
        secret = read_bounded(path, _SECRET_BYTES).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting} {path}: cannot be read: {error}") from None
    if stat.S_IMODE(mode) & 0o007:
        raise ConfigError(f"{setting} {path}: every user may read it: chmod o-rwx {path}")
    return secret
