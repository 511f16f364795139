"""Numbered versions of a folder with install and rollback, and folders whose files are published together."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jetsel.base.errors import JetselError
from jetsel.base.files import TEMPORARY, flush, locked, repair_of, write

NONE = 0
"""The number for no version: none is in use."""

_CURRENT = "current"
_BEFORE = "before"  # file in each version: the number that was in use before it
_NEW, _LINK, _OLD = f"{TEMPORARY}new", f"{TEMPORARY}link", f"{TEMPORARY}old-"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Versions:
    """The versions in one folder; a directory never changes once it has its number.

    most_kept: number of older versions to keep. error: class raised if the folder cannot be read or written; the
    message names the repair.
    """

    def __init__(self, folder: Path, error: type[JetselError], most_kept: int = 10) -> None:
        self.folder = folder
        self._error = error
        self._kept = most_kept

    def path(self, number: int) -> Path:
        """Return the directory of a version, which need not exist."""
        return self.folder / str(number)

    def current(self) -> int:
        """Return the number in use, NONE if there is none. Raises `error` for a foreign link."""
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
        """Return the numbers of all kept versions, the oldest first. Raises `error`."""
        try:
            return sorted(int(entry.name) for entry in self.folder.iterdir() if _is_version(entry))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as fault:
            raise self._error(f"{self.folder}: cannot be listed ({fault.strerror}); check owner and mode") from fault

    def before(self) -> int:
        """Return the number that was in use before the current one was installed, NONE if there was none.

        A version that was rolled back from is never returned. If the number is no longer kept, the next lower one is.
        """
        used, numbers = self.current(), self.numbers()
        try:
            noted = int((self.path(used) / _BEFORE).read_text())
        except (OSError, ValueError):  # the current version is damaged
            noted = -1
        return noted if noted in (NONE, *numbers) else max([n for n in numbers if n < used], default=NONE)

    def install(self, make: Callable[[Path], object]) -> int:
        """Let `make` fill a new version, and put it into use; return its number.

        make: fills a temporary folder with flushed files, and raises if they would be rejected. The folder is then
        flushed and renamed to its number before the link is replaced, so that after a crash or a full disk the previous
        version is in use. Raises `error`; nothing has changed then.
        """
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                flush(self.folder.parent)
        except OSError as fault:
            raise self._not_written(fault) from fault
        with self._locked():
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
                with contextlib.suppress(OSError, JetselError):  # the next command removes the rest
                    self._remove(number)
                    shutil.rmtree(self.folder / _NEW, ignore_errors=True)
                raise
            with contextlib.suppress(OSError, JetselError):  # the next installation removes the rest
                for old in set(self.numbers()[: -self._kept]) - {number, was}:
                    self._remove(old)
        return number

    def use(self, number: int, check: Callable[[Path], object]) -> None:
        """Put another version, or none (NONE), into use. check: raises if it would be rejected.

        Raises `error`; nothing has changed then.
        """
        with self._locked():
            if number != NONE:
                check(self.path(number))
            self._point(number)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock; first remove leftovers of killed processes."""
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
        """Point the link to this number and flush it; if that fails, restore the link."""
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
        """Remove a version; rename it first, so that no partial version is ever listed."""
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
_NAMES = f"{TEMPORARY}names"  # lists the files that are being moved out of the working folder, or removed

IsNamed = Callable[[str], bool]
"""Returns whether a record of the folder names this file."""


@contextmanager
def working_folder(folder: Path, is_named: IsNamed, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Provide an empty folder on the same disk for preparing files, for the duration of a `with`.

    One process at a time has it; others wait (waiting: called once then). Leftovers of a killed process are removed
    first: its working folder, and those of its files that no record names. Raises OSError.
    """
    with locked(folder, waiting):
        _remove_working_folder(folder, is_named)
        work = folder / _WORK
        try:
            work.mkdir()
            yield work
        finally:
            _remove_working_folder(folder, is_named)


def publish(work: Path, names: Sequence[str], replaced: Iterable[str] = ()) -> None:
    """Move the named files from a working folder into its parent folder, flushed to disk.

    names: the files; the last one is the record, which names the others and makes them valid once it is moved.
    replaced: files of the previous record; they are removed with the working folder unless a record names them. If a
    file is overwritten, the old record is removed first, so that a record always describes the files beside it. Raises
    OSError.
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
    """Remove a record; its other files are removed with the working folder unless a record names them.

    Raises OSError.
    """
    folder = work.parent
    write(work / _NAMES, "\n".join(others).encode())
    flush(work)
    (folder / record).unlink()
    flush(folder)


def _remove_working_folder(folder: Path, is_named: IsNamed) -> None:
    """Remove the working folder, and the files that it lists unless a record names them."""
    work = folder / _WORK
    if not work.is_dir():
        return
    listed = work / _NAMES
    for name in listed.read_text().split("\n") if listed.is_file() else ():
        path = folder / name
        if name == Path(name).name and path.is_file() and not is_named(name):
            path.unlink()
    shutil.rmtree(work)
