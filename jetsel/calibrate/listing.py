"""List the images below a folder, and the files that are skipped: those of systems and programs, and non-images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from jetsel.base.errors import BadImageError
from jetsel.base.names import SUFFIXES, LeftOut, system_kind

MOST_NAMED = 3  # files that are listed for each kind of reason


def images_below(folder: Path, *, follow_links: bool = True) -> Iterator[Path | LeftOut]:
    """Yield the image files at any depth in the order of their paths; entries to skip as LeftOut, with the reason.

    follow_links: follow links to folders in this folder; deeper links are never followed. Raises BadImageError if this
    folder cannot be read.
    """
    for path, is_folder in _entries(folder):
        if not is_folder or isinstance(path, LeftOut):
            yield path
        elif path.is_symlink() and not follow_links:
            yield LeftOut(path, "link to a folder: links are followed directly in the folder that you name, not below")
        else:
            try:
                yield from images_below(path, follow_links=False)
            except BadImageError as error:
                yield LeftOut(path, f"unreadable folder: {str(error).removeprefix(f'{path}: ')}")


def folders_in(folder: Path) -> list[Path]:
    """Return the folders and links to folders directly in a folder, by name; raises BadImageError if unreadable."""
    return [path for path, is_folder in _entries(folder) if is_folder and isinstance(path, Path)]


def _entries(folder: Path) -> list[tuple[Path | LeftOut, bool]]:
    """Return a folder's entries in the order of their names, each with whether it is a folder or a link to one."""
    try:
        with os.scandir(folder) as entries:
            sorted_entries = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise BadImageError(f"{folder}: cannot be read: {error.strerror}; give your user access to it") from None
    paths = [(folder / entry.name, os.path.isdir(entry)) for entry in sorted_entries]  # noqa: PTH112  # Path's raises errors
    return [(path_if_usable(path, is_folder=is_folder), is_folder) for path, is_folder in paths]


def path_if_usable(path: Path, *, is_folder: bool) -> Path | LeftOut:
    """Return the path, or LeftOut with the reason if its name alone shows that it holds no images."""
    if printable(path) != path:
        return LeftOut(printable(path), "unreadable: its name is not UTF-8; rename it")
    kind = system_kind(path.name, is_folder=is_folder)
    if kind is not None:
        return LeftOut(path, f"{kind}: systems and programs make such {'folders' if is_folder else 'files'}")
    if not is_folder and path.suffix.lower() not in SUFFIXES:
        return LeftOut(path, "not an image: its name does not end with .jpg, .png, .webp or the like")
    return path


def printable(path: Path) -> Path:
    """Return the path with replacement characters for bytes that are not UTF-8, so that every output accepts it."""
    return Path(os.fsencode(path).decode(errors="replace"))


def left_out_lines(left_out: Iterable[tuple[Path | str, str]]) -> list[str]:
    """Return lines for a terminal: for each kind of reason, the number of skipped files and the first few of them.

    left_out: paths and reasons; a reason is `kind: particulars`.
    """
    files: dict[str, list[str]] = {}
    for path, reason in left_out:
        kind, _, particulars = reason.partition(": ")
        files.setdefault(kind, []).append(f"  {path}: {particulars}")
    lines = []
    for kind, file_lines in sorted(files.items(), key=lambda item: -len(item[1])):
        lines += [f"left out: {len(file_lines)} {kind}", *file_lines[:MOST_NAMED]]
        lines += [f"  and {len(file_lines) - MOST_NAMED} more"] if len(file_lines) > MOST_NAMED else []
    return lines
