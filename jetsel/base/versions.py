"""Numbered versions of a folder with install and rollback, and folders to which several files are added in one step."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jetsel.base.errors import JetselError
from jetsel.base.files import TEMPORARY, flush, locked, repair_of, write

NONE = 0  # the number in use if there is no version

_CURRENT = "current"  # link to the version in use
_BEFORE = "before"  # file in each version: the number that was in use before it
_NEW, _LINK, _OLD = f"{TEMPORARY}new", f"{TEMPORARY}link", f"{TEMPORARY}old-"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Versions:
    """The versions in one folder: directories 1, 2, 3, ..., which never change, and a link to the one in use.

    error: class that the methods raise if the folder cannot be read or written. most_kept: number of older versions to
    keep.
    """

    def __init__(self, folder: Path, error: type[JetselError], most_kept: int = 10) -> None:
        self.folder = folder
        self._error = error
        self._most_kept = most_kept

    def path(self, number: int) -> Path:
        """Return the path of a version's directory, whether or not it exists."""
        return self.folder / str(number)

    def current(self) -> int:
        """Return the number in use, NONE if there is none. Raises `error` if the link does not point to a version."""
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
            raise self._error(f"{link}: points to {target!r}, not to a version; remove it, then roll back or install")
        return int(target)

    def numbers(self) -> list[int]:
        """Return the numbers of all versions in the folder, the oldest first. Raises `error`."""
        try:
            names = [entry.name for entry in self.folder.iterdir() if entry.is_dir()]
            return sorted(int(name) for name in names if _NUMBER.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as fault:
            raise self._error(f"{self.folder}: cannot be listed ({fault.strerror}); check owner and mode") from fault

    def before(self) -> int:
        """Return the number to roll back to: the one in use before the current one was installed, NONE if none was.

        If that version no longer exists, it is the next lower number. Raises `error`.
        """
        current, existing = self.current(), self.numbers()
        try:
            previous = int((self.path(current) / _BEFORE).read_text())
        except (OSError, ValueError):  # the current version is damaged
            previous = -1
        return previous if previous in (NONE, *existing) else max([n for n in existing if n < current], default=NONE)

    def install(self, make: Callable[[Path], object]) -> int:
        """Let `make` fill a new version, put it into use, remove old versions, and return the new number.

        make: fills the temporary folder that it is given with flushed files, and raises if a reader would reject them.
        The folder is renamed to its number before the link is replaced, so that after a crash or on a full disk the
        previous version is in use. Raises `error`, or what `make` raises; then nothing has changed.
        """
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                flush(self.folder.parent)
        except OSError as fault:
            raise self._not_written(fault) from fault
        with self._locked():
            previous = self.current()
            number = max(previous, *self.numbers(), NONE) + 1
            try:
                (self.folder / _NEW).mkdir()
                make(self.folder / _NEW)
                write(self.folder / _NEW / _BEFORE, f"{previous}\n".encode())
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
                for old_number in set(self.numbers()[: -self._most_kept]) - {number, previous}:
                    self._remove(old_number)
        return number

    def use(self, number: int, check: Callable[[Path], object]) -> None:
        """Put an existing version, or NONE, into use. check: takes its path, and raises if a reader would reject it.

        Raises `error`, or what `check` raises; then nothing has changed.
        """
        with self._locked():
            if number != NONE:
                check(self.path(number))
            self._point(number)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock during a `with` block, and first remove what killed processes left."""
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
        """Make the link `current` point to this number, flushed to disk; if that fails, restore it."""
        previous = self.current()
        try:
            self._replace_link(number)
            flush(self.folder)
        except BaseException:
            with contextlib.suppress(OSError, JetselError):
                if self.current() != previous:
                    self._replace_link(previous)
            raise

    def _replace_link(self, number: int) -> None:
        """Make the link `current` point to this number in one step, or remove it for NONE."""
        if number == NONE:
            (self.folder / _CURRENT).unlink(missing_ok=True)
        else:
            (self.folder / _LINK).unlink(missing_ok=True)
            (self.folder / _LINK).symlink_to(str(number))
            (self.folder / _LINK).replace(self.folder / _CURRENT)

    def _remove(self, number: int) -> None:
        """Remove a version. It gets another name first, so that `numbers` never lists it with a part of its files."""
        temporary = self.folder / f"{_OLD}{number}"
        with contextlib.suppress(FileNotFoundError):
            self.path(number).rename(temporary)
            shutil.rmtree(temporary)

    def _not_written(self, fault: OSError) -> JetselError:
        """Return the error to raise for a failed write."""
        return self._error(
            f"{self.folder}: cannot be written ({fault}); the installed version is unchanged: {repair_of(fault)}"
        )


_WORK = f"{TEMPORARY}work"
_NAMES = f"{TEMPORARY}names"  # lists the files that are being moved out of the working folder, or removed

IsNamed = Callable[[str], bool]  # takes a file's name; returns whether a record (see `publish`) names the file


@contextmanager
def working_folder(folder: Path, is_named: IsNamed, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Provide an empty folder inside `folder` during a `with` block, to prepare files for `publish` or `withdraw`.

    One process at a time has it; others wait, and call `waiting` once before. What a killed process left is removed
    first: its working folder, and those of its files in `folder` that no record names. Raises OSError.
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
    """Move files from a working folder into its parent folder, flushed to disk, so that readers see all or none.

    names: the files; the last one is the record, such as a manifest: it names the others, which readers use only if a
    record does. replaced: files of the previous record; they are removed with the working folder unless a record names
    them. If a file is overwritten, the old record is removed first, so that records always fit the files beside them.
    Raises OSError.
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
    """Remove a record; the working folder's end removes `others`, unless a record names them. Raises OSError."""
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
    list_file = work / _NAMES
    for name in list_file.read_text().split("\n") if list_file.is_file() else ():
        path = folder / name
        if name == Path(name).name and path.is_file() and not is_named(name):
            path.unlink()
    shutil.rmtree(work)
