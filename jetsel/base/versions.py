"""Numbered versions of one thing, swapped and rolled back; and folders that are published whole."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from jetsel.base.errors import JetselError
from jetsel.base.files import TEMPORARY, flush, locked, repair_of, write

NONE = 0
"""The number of no version: what was there before the first is in use."""

_CURRENT = "current"
_BEFORE = "before"  # in each directory: the number that was in use when it was installed
_NEW, _LINK, _OLD = f"{TEMPORARY}new", f"{TEMPORARY}link", f"{TEMPORARY}old-"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Versions:
    """The versions of one thing in a folder of their own; no directory is ever changed once it has its number.

    most_kept: how many older versions stay. error: the class of what is raised if the folder cannot be read or written;
    its message names the repair.
    """

    def __init__(self, folder: Path, error: type[JetselError], most_kept: int = 10) -> None:
        self.folder = folder
        self._error = error
        self._kept = most_kept

    def path(self, number: int) -> Path:
        """Return the directory of a version, whether or not it is there."""
        return self.folder / str(number)

    def current(self) -> int:
        """Return the number in use, NONE if there is none. Raises `error` if the link is none of ours."""
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
            raise self._error(
                f"{link}: points to {target!r}, not to a version number; remove it, then roll back or install"
            )
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
        """Return the number that was in use when the current one was installed; NONE if there was none.

        It is thus never one that was rolled back from; if it is not kept any more, it is the next lower number.
        """
        used, numbers = self.current(), self.numbers()
        try:
            noted = int((self.path(used) / _BEFORE).read_text())
        except (OSError, ValueError):  # the current one is damaged itself
            noted = -1
        return noted if noted in (NONE, *numbers) else max([n for n in numbers if n < used], default=NONE)

    def install(self, files: Mapping[str, bytes], check: Callable[[Path], object]) -> int:
        """Write a directory with these files under the next number, and have it used; return the number.

        check: raises if what lies on the disk would be refused. See `install_made`.
        """

        def make(folder: Path) -> None:
            for name, content in files.items():
                write(folder / name, content)
            check(folder)

        return self.install_made(make)

    def install_made(self, make: Callable[[Path], object]) -> int:
        """Have a directory filled, under the next number, and have it used; return the number.

        make: fills it under a temporary name with files that it flushes, and raises if they would be refused; the
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
        """Have the link lead to this number, at once and on the disk; if that fails, to what it led to before."""
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
        return self._error(
            f"{self.folder}: cannot be written ({fault}); the installed version is unchanged: {repair_of(fault)}"
        )


def _is_version(entry: Path) -> bool:
    return _NUMBER.fullmatch(entry.name) is not None and entry.is_dir()


_WORK = f"{TEMPORARY}work"
_NAMES = f"{TEMPORARY}names"  # in the working folder: the files that are being moved out of it, or removed

Named = Callable[[str], bool]
"""Whether a record of the folder names this file."""


@contextmanager
def working_folder(folder: Path, is_named: Named, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Give an empty folder on the same disk to prepare files in, for as long as a `with` lasts.

    One process at a time has it, and others wait (waiting: called once then). What a process that was killed left is
    removed first: its working folder, and those of its files that no record names. Raises OSError.
    """
    with locked(folder, waiting):
        _clear_up(folder, is_named)
        work = folder / _WORK
        try:
            work.mkdir()
            yield work
        finally:
            _clear_up(folder, is_named)


def publish(work: Path, names: Sequence[str], replaced: Iterable[str] = ()) -> None:
    """Move files out of a working folder into its folder, on the disk and under these names; the last is the record.

    replaced: files of the record that stood there before; they go with the working folder unless a record names them.
    If another file than the record stands there under its name already, the old record is removed first: no record
    ever speaks of another file than the one beside it. Raises OSError.
    """
    folder = work.parent
    *others, record = names
    write(work / _NAMES, "\n".join((*others, *replaced)).encode())
    for name in names:
        flush(work / name)
    flush(work)
    if any((folder / name).exists() for name in others):
        (folder / record).unlink(missing_ok=True)
        flush(folder)
    for name in others:
        (work / name).replace(folder / name)
    flush(folder)
    (work / record).replace(folder / record)
    flush(folder)


def withdraw(work: Path, record: str, others: Iterable[str]) -> None:
    """Remove a record from the folder; its other files go with the working folder unless a record names them.

    Raises OSError.
    """
    folder = work.parent
    write(work / _NAMES, "\n".join(others).encode())
    flush(work)
    (folder / record).unlink()
    flush(folder)


def _clear_up(folder: Path, is_named: Named) -> None:
    """Remove the working folder, and of the files that it was about those that no record names."""
    work = folder / _WORK
    if not work.is_dir():
        return
    listed = work / _NAMES
    for name in listed.read_text().split("\n") if listed.is_file() else ():
        path = folder / name
        if name == Path(name).name and path.is_file() and not is_named(name):
            path.unlink()
    shutil.rmtree(work)
