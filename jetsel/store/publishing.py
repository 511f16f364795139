"""Files that belong together in one folder: the record among them makes the others count, so it comes last, goes first.

A reader looks for records alone. It sees all files of a record or none, whenever a writer is killed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jetsel.store.files import TEMPORARY, flush, locked, write

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
    Where another file than the record stands there under its name already, the old record is removed first: no record
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
