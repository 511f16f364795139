"""Key files on the disk: read bounded and from who may be trusted, written whole, never over another unasked."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Set as AbstractSet
from pathlib import Path

from jetsel.errors import ConfigError
from jetsel.store import flush

MOST_BYTES = 4096  # ours have under 400
PUBLIC_MODE, SECRET_MODE = 0o644, 0o600
WRITABLE, READABLE = 0o022, 0o077  # by others than the owner: what a public and a secret file must not be
HOW_TO_MAKE = "jetsel keys new"


def open_folder(path: Path, owners: AbstractSet[int] | None, repair: str) -> int:
    """Open a folder of keys, for `read(folder_fd=...)`; the caller closes the descriptor.

    owners: user ids of which one must own it, None: anybody. Raises ConfigError where it is missing (`repair` says what
    to do), or where anybody but its owner may write to it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened ({error.strerror}): {repair}") from None
    try:
        _check(os.fstat(descriptor), path, owners, WRITABLE)
    except ConfigError:
        os.close(descriptor)
        raise
    return descriptor


def read(
    path: Path,
    *,
    forbidden: int,
    owners: AbstractSet[int] | None = None,
    folder_fd: int | None = None,
    repair: str = HOW_TO_MAKE,
) -> str:
    """Return a key file's text.

    path: inside of `folder_fd` where that is given, and then no link is followed. forbidden: WRITABLE for a public key,
    READABLE for a secret one, 0 for a file that is only to be copied from. Owner and mode are those of the open
    file, so nobody can exchange it after the look. Raises ConfigError with the command that repairs it.
    """
    name = path.name if folder_fd is not None else str(path)
    no_link = os.O_NOFOLLOW if folder_fd is not None else 0
    try:
        # A FIFO would hold up an open that waits; it is refused below.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | no_link
        descriptor = os.open(name, flags, dir_fd=folder_fd)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {repair}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is no file: {repair}")
        _check(found, path, owners, forbidden)
        content = os.read(descriptor, MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {repair}") from None
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} has more than the {MOST_BYTES} bytes that a key file may have: {repair}")
    return content.decode("utf-8", "replace")


def _check(found: os.stat_result, path: Path, owners: AbstractSet[int] | None, forbidden: int) -> None:
    """Raise ConfigError where a stranger owns the file or the mode lets others do what only its owner may."""
    if owners is not None and found.st_uid not in owners:
        raise ConfigError(
            f"{path} belongs to user {found.st_uid}, who is neither root nor the one that uses it: "
            f"sudo chown {min(owners, key=lambda uid: (uid == 0, uid))} {path}"
        )
    if found.st_mode & forbidden:
        what, letters = ("read", "go-rwx") if forbidden == READABLE else ("changed", "go-w")
        raise ConfigError(
            f"{path} can be {what} by others (mode {stat.S_IMODE(found.st_mode):04o}): chmod {letters} {path}"
        )


def make_folder(path: Path, mode: int) -> None:
    """Make a folder of this mode at most, and those above that are missing, which nobody but their owner may change.

    `Path.mkdir(parents=True)` would leave those to the caller's umask. Raises OSError.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o755, exist_ok=True)
    path.mkdir(mode=mode, exist_ok=True)


def write(path: Path, text: str, mode: int, owner: tuple[int, int] | None = None, *, replace: bool = False) -> None:
    """Write a file whole or not at all: beside its place first, then moved there.

    owner: (uid, gid) to give it to. replace: over what is there. Raises ConfigError where it is there already, or the
    folder cannot be written to.
    """
    beside: str | None = None
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if owner is not None:
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        if replace:
            Path(beside).replace(path)
        else:
            os.link(beside, path)  # unlike a rename it fails where something is there
        flush(path.parent)
    except FileExistsError:
        raise ConfigError(f"{path} is there already, and a key is never overwritten: choose another name") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; use sudo, or another folder") from None
    finally:
        if beside is not None:
            with contextlib.suppress(FileNotFoundError):
                Path(beside).unlink()
