"""A calibration as one directory: read only if whole and ours, replaced whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jetsel.errors import CalibrationError
from jetsel.premodel.artefact import Calibration
from jetsel.premodel.coding import encode, identity, read
from jetsel.store import flush

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def save(calibration: Calibration, directory: str | os.PathLike[str]) -> None:
    """Write the calibration as `directory`, replacing the one there, if any, only once the new one is whole on disk.

    It is written beside the directory, flushed, read back and then renamed into place; at every moment, a kill or a
    power cut included, `load` finds either the old or the new one. A directory that holds anything else is refused.
    Raises CalibrationError, and then the old one stays.
    """
    target = Path(directory).resolve()
    files = encode(calibration)
    new, old = _asides(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with only_writer(target.parent) as parent:
            _clear_up(target)
            _refuse_foreign(target, set(files))
            try:
                write_aside(new, files)
                _swap(new, target, old, parent)
            finally:
                shutil.rmtree(new, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)  # what stays of it, the next save removes
    except OSError as fault:
        raise not_installed(target, fault) from fault


def load(directory: str | os.PathLike[str]) -> Calibration:
    """Read a calibration; its arrays are read-only.

    Raises CalibrationError that says why it is refused: missing, foreign, too new, truncated, altered or contradictory.
    """
    target = Path(directory).resolve()
    while True:
        seen = _identity(target)
        try:
            return read(_standing(target))
        except CalibrationError:
            if _identity(target) == seen:  # otherwise it was replaced while being read
                raise


def identify(directory: str | os.PathLike[str]) -> str:
    """Return the hash of a calibration, by which two copies are known to be the same. Raises CalibrationError."""
    return identity(_standing(Path(directory).resolve()))


def _asides(target: Path) -> tuple[Path, Path]:
    """Return where the new one is written and where the old one waits during a save."""
    return target.with_name(f".{target.name}.jetsel-new"), target.with_name(f".{target.name}.jetsel-old")


def _standing(target: Path) -> Path:
    """Return the directory to read: the old one where a save was cut off between its two renames."""
    old = _asides(target)[1]
    return old if not target.exists() and old.exists() else target


def _identity(target: Path) -> tuple[int, int, int] | None:
    """Return what tells one directory from the next in its place; the time too, since inode numbers are used again."""
    try:
        found = target.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _clear_up(target: Path) -> None:
    """Finish what a save that was cut off left: the old one comes back, or goes if the new one is in place."""
    new, old = _asides(target)
    if new.exists():
        shutil.rmtree(new)
    if old.exists():
        if target.exists():
            shutil.rmtree(old)
        else:
            old.rename(target)


def _refuse_foreign(target: Path, ours: set[str]) -> None:
    """Refuse to replace what is not a calibration, damaged or not: it would be deleted."""
    if not target.exists():
        return
    if not target.is_dir():
        raise CalibrationError(f"{target}: is no directory; name another place")
    others = sorted({entry.name for entry in target.iterdir()} - ours)
    if others:
        raise CalibrationError(f"{target}: holds {others[0]}, which is no part of a calibration; name another place")


def _swap(new: Path, target: Path, old: Path, parent: int) -> None:
    """Put the new one in the old one's place; on any fault the old one is put back."""
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
        os.fsync(parent)
    except BaseException:
        if target.exists():
            target.rename(new)
        if old.exists():
            old.rename(target)
        raise


@contextmanager
def only_writer(parent: Path) -> Iterator[int]:
    """Hold the directory's lock, which the kernel frees if we die; gives its descriptor. Raises OSError."""
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def write_aside(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files into a new folder, flush them and it to the disk, and read them back as a calibration.

    Raises OSError, and CalibrationError where what the disk gives back would be refused.
    """
    folder.mkdir()
    for name, data in files.items():
        with (folder / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    flush(folder)
    read(folder)


def not_installed(target: Path, fault: OSError) -> CalibrationError:
    """Return the error of a calibration that could not be put into its place, with what to do about it."""
    repair = (
        "free some space there"
        if fault.errno in NO_SPACE
        else "use an account that may write there, or name another place"
        if fault.errno in NOT_ALLOWED
        else "repair this, or name another place"
    )
    return CalibrationError(f"{target}: not installed ({fault}); what was installed before stays: {repair}")
