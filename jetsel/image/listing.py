"""Lists the image files below a folder: what file systems, network stores and sync programs put there is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})
"""How the names of files end that jetsel.image reads."""

NOT_AN_IMAGE = "not an image: its name does not end with .jpg, .png, .webp or the like"

_FOLDERS = frozenset(
    {
        *(
            "@eadir",
            "@tmp",
            "@recycle",
            "@recently-snapshot",
            "#recycle",
            "#snapshot",
            "#recycle_bin",
        ),  # Synology, QNAP
        *("__macosx", "$recycle.bin", "system volume information", "recycler", "found.000", "lost+found"),
        *("_gsdata_", "sync.ffs_db", "__pycache__"),  # GoodSync, FreeFileSync
    }
)
_FILES = re.compile(
    r"thumbs\.db(:encryptable)?|ehthumbs(_vista)?\.db|desktop\.ini|folder\.jpg:.*|icon\r|picasa\.ini|~\$.*|.*~"
    r"|.*\.(part|partial|crdownload|download|tmp|temp|filepart|ffs_tmp|!sync|bts)",
    re.IGNORECASE,
)


def system_kind(name: str, *, is_folder: bool) -> str | None:
    """Return which kind of a system's own file or folder has this name, None if a person may have made it."""
    if name.startswith("."):
        return "hidden"
    if is_folder:
        return "a system's folder" if name.lower() in _FOLDERS else None
    return "a system's file" if _FILES.fullmatch(name) else None


@dataclass(frozen=True)
class LeftOut:
    """What is no image to use. reason: the kind, then `: ` and the particulars."""

    path: Path
    reason: str


def files_below(folder: Path) -> Iterator[Path | LeftOut]:
    """Yield every file at any depth, in the order of their paths, and what is left out.

    Links to folders are not followed. Raises OSError if the folder itself cannot be read.
    """
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path = folder / entry.name
        is_folder = entry.is_dir()
        kind = system_kind(entry.name, is_folder=is_folder)
        if kind is not None:
            yield LeftOut(path, f"{kind}: {entry.name}")
        elif not is_folder:
            yield path
        elif not entry.is_symlink():
            try:
                yield from files_below(path)
            except OSError as error:
                yield LeftOut(path, f"unreadable: {error.strerror}")


def images_below(folder: Path) -> Iterator[Path | LeftOut]:
    """Yield the image files below a folder as `files_below` does; other files are left out too."""
    for found in files_below(folder):
        if isinstance(found, Path) and found.suffix.lower() not in SUFFIXES:
            yield LeftOut(found, NOT_AN_IMAGE)
        else:
            yield found
