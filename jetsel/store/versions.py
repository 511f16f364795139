"""Numbered directories that never change, and a link to the one in use: install, history, rollback."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jetsel.errors import JetselError
from jetsel.store.files import TEMPORARY, flush, locked, repair_of, write

NONE = 0
"""The number of no version: what was there before the first is in use."""

_CURRENT = "current"
_BEFORE = "before"  # in each directory: the number that was in use when it was installed
_NEW, _LINK, _OLD = f"{TEMPORARY}new", f"{TEMPORARY}link", f"{TEMPORARY}old-"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Versions:
    """The versions of one thing in a folder of their own; no directory is ever changed once it has its number.

    kept: how many older versions stay. error: the class of what is raised where the folder cannot be read or written;
    its message names the repair.
    """

    def __init__(self, folder: Path, error: type[JetselError], kept: int = 10) -> None:
        self.folder = folder
        self._error = error
        self._kept = kept

    def path(self, number: int) -> Path:
        """Return the directory of a version, whether or not it is there."""
        return self.folder / str(number)

    def current(self) -> int:
        """Return the number in use, NONE where there is none. Raises `error` where the link is none of ours."""
        link = self.folder / _CURRENT
        try:
            target = str(link.readlink())
        except (FileNotFoundError, NotADirectoryError):
            return NONE
        except OSError as fault:
            raise self._error(
                f"{link}: cannot be read ({fault.strerror}); remove it, or check owner and mode"
            ) from fault
        if not _NUMBER.fullmatch(target):
            raise self._error(f"{link}: leads to {target!r}, not to a number; remove it, then roll back or install")
        return int(target)

    def numbers(self) -> list[int]:
        """Return the number of every version that is kept, the oldest first. Raises `error`."""
        try:
            return sorted(int(entry.name) for entry in self.folder.iterdir() if _is_version(entry))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as fault:
            raise self._error(f"{self.folder}: cannot be listed ({fault.strerror}); check owner and mode") from fault

    def before(self) -> int:
        """Return the number that was in use when the current one was installed; NONE where there was none.

        It is thus never one that was rolled back from; where it is not kept any more, it is the next lower number.
        """
        used, numbers = self.current(), self.numbers()
        try:
            noted = int((self.path(used) / _BEFORE).read_text())
        except (OSError, ValueError):  # the current one is damaged itself
            noted = -1
        return noted if noted in (NONE, *numbers) else max([n for n in numbers if n < used], default=NONE)

    def install(self, files: Mapping[str, bytes], check: Callable[[Path], object]) -> int:
        """Write a directory with these files under the next number, and have it used; return the number.

        check: raises where what lies on the disk would be refused. See `install_made`.
        """

        def make(folder: Path) -> None:
            for name, content in files.items():
                write(folder / name, content)
            check(folder)

        return self.install_made(make)

    def install_made(self, make: Callable[[Path], object]) -> int:
        """Have a directory filled, under the next number, and have it used; return the number.

        make: fills it under a temporary name with files that it flushes, and raises where they would be refused; the
        directory is then flushed and renamed to its number; only then the link is replaced. Killed or out of space at
        any moment, the link leads to the one before. Raises `error`, and then nothing has changed.
        """
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                flush(self.folder.parent)
        except OSError as fault:
            raise self._not_written(fault) from fault
        with self._alone():
            was = self.current()
            number = max(was, *self.numbers(), NONE) + 1
            try:
                (self.folder / _NEW).mkdir()
                make(self.folder / _NEW)
                write(self.folder / _NEW / _BEFORE, f"{was}\n".encode())
                flush(self.folder / _NEW)
                (self.folder / _NEW).rename(self.path(number))
                flush(self.folder)
                self._point(number)
            except BaseException:
                with contextlib.suppress(OSError, JetselError):  # what stays is removed by the next command
                    self._remove(number)
                    shutil.rmtree(self.folder / _NEW, ignore_errors=True)
                raise
            with contextlib.suppress(OSError, JetselError):  # what stays is removed by the next installation
                for old in set(self.numbers()[: -self._kept]) - {number, was}:
                    self._remove(old)
        return number

    def use(self, number: int, check: Callable[[Path], object]) -> None:
        """Have another version used, or none (NONE); check: as in `install`.

        Raises `error`, and then nothing has changed.
        """
        with self._alone():
            if number != NONE:
                check(self.path(number))
            self._point(number)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder's lock, and begin by removing what a process that was killed left."""
        try:
            with locked(self.folder):
                (self.folder / _LINK).unlink(missing_ok=True)
                for entry in list(self.folder.iterdir()):
                    if entry.name == _NEW or entry.name.startswith(_OLD):
                        shutil.rmtree(entry)
                yield
        except OSError as fault:
            raise self._not_written(fault) from fault

    def _point(self, number: int) -> None:
        """Have the link lead to this number, at once and on the disk; where that fails, to what it led to before."""
        was = self.current()
        try:
            self._lead(number)
            flush(self.folder)
        except BaseException:
            with contextlib.suppress(OSError, JetselError):
                if self.current() != was:
                    self._lead(was)
            raise

    def _lead(self, number: int) -> None:
        if number == NONE:
            (self.folder / _CURRENT).unlink(missing_ok=True)
        else:
            (self.folder / _LINK).unlink(missing_ok=True)
            (self.folder / _LINK).symlink_to(str(number))
            (self.folder / _LINK).replace(self.folder / _CURRENT)

    def _remove(self, number: int) -> None:
        """Remove a version; its number goes first, so that no half of one is ever listed."""
        temporary = self.folder / f"{_OLD}{number}"
        with contextlib.suppress(FileNotFoundError):
            self.path(number).rename(temporary)
            shutil.rmtree(temporary)

    def _not_written(self, fault: OSError) -> JetselError:
        return self._error(f"{self.folder}: not written ({fault}); what was installed stays: {repair_of(fault)}")


def _is_version(entry: Path) -> bool:
    return _NUMBER.fullmatch(entry.name) is not None and entry.is_dir()
