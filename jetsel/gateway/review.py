"""Review of the images that `jetsel watch --save` kept: each is moved to its class's folder, or put aside."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Literal

from msgspec import Struct

from jetsel.base.errors import BadRequestError, ConfigError
from jetsel.gateway.cameras.saver import folder_of

Verdict = Literal["right", "wrong", "discard"]
DISCARDED = ".discarded"  # calibrations pass hidden folders over
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
_GONE = "was decided already, or removed: reload the page"


class Pending(Struct, frozen=True):
    """The image to decide on. image: its path in the folder, None if none is left. label: as the models said.

    classes: identifiers of the folders that there are.
    """

    image: str | None
    identifier: str | None
    label: str | None
    left: int
    classes: list[str]
    can_undo: bool


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """What the owner says of an image. identifier: of its class, for `wrong`."""

    image: str
    verdict: Verdict
    identifier: str | None = None


class Review:
    """Moves files from one folder to another; nothing is deleted or overwritten. Any thread may call."""

    def __init__(self, folder: Path, reviewed: Path | None) -> None:
        """Reviewed: None for the folder's name with `-reviewed`. Raises ConfigError."""
        self._folder = folder.resolve()
        self._reviewed = (reviewed or folder.with_name(f"{folder.resolve().name}-reviewed")).resolve()
        if not self._folder.is_dir():
            raise ConfigError(f"--review {folder}: there is no such folder: `jetsel watch --save {folder}` makes it")
        if self._reviewed.is_relative_to(self._folder) or self._folder.is_relative_to(self._reviewed):
            raise ConfigError(f"--reviewed {self._reviewed}: name a folder beside {folder}, neither in it nor above it")
        self._lock = threading.Lock()
        self._last: tuple[Path, Path] | None = None  # from where to where

    def pending(self, after: str | None = None) -> Pending:
        """Return the image after this one, in the order of the paths; the first if there is none after it."""
        with self._lock:
            paths = self._images()
            classes = sorted(
                {one.name for root in (self._folder, self._reviewed) for one in _folders(root)}, key=str.casefold
            )
            following = next((one for one in paths if after is not None and one > after), None)
            image = following or (paths[0] if paths else None)
            can_undo = self._last is not None
        if image is None:
            return Pending(None, None, None, 0, classes, can_undo)
        identifier, _, name = image.rpartition("/")
        return Pending(image, identifier, name.rpartition("-")[0] or name, len(paths), classes, can_undo)

    def read(self, image: str) -> bytes:
        """Return an image's content; raises BadRequestError."""
        try:
            return self._path(image).read_bytes()
        except OSError:
            raise BadRequestError(f"{image} {_GONE}") from None

    def decide(self, decision: Decision) -> None:
        """Move an image to where it belongs; raises BadRequestError, and then it stays."""
        source = self._path(decision.image)
        identifier = source.parent.name if decision.verdict == "right" else decision.identifier
        if decision.verdict == "discard":
            target = self._reviewed / DISCARDED / source.parent.name
        elif not identifier or folder_of(identifier) != identifier:
            raise BadRequestError("identifier: give the class's identifier, without / and no dot in front")
        else:
            target = self._reviewed / identifier
        with self._lock:
            self._last = source, self._move(source, target / source.name)

    def undo(self) -> str:
        """Move the last image back; return its path in the folder. Raises BadRequestError if there is none."""
        with self._lock:
            if self._last is None:
                raise BadRequestError("there is nothing to undo")
            source, moved = self._last
            back = self._move(moved, source)
            self._last = None
        return back.relative_to(self._folder).as_posix()

    def _images(self) -> list[str]:
        found = [
            f"{folder.name}/{entry.name}"
            for folder in _folders(self._folder)
            for entry in os.scandir(folder)
            if entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in SUFFIXES
        ]
        return sorted(one for one in found if "/." not in one)

    def _path(self, image: str) -> Path:
        """Return the file of an image that is pending; raises BadRequestError for all else."""
        identifier, slash, name = image.partition("/")
        path = self._folder / identifier / name
        is_plain = slash and not {identifier, name} & {"", ".", ".."} and "/" not in name and "\0" not in image
        if not is_plain or path.parent.is_symlink() or path.is_symlink() or not path.is_file():
            raise BadRequestError(f"{image[:200]} {_GONE}")
        return path

    @staticmethod
    def _move(source: Path, target: Path) -> Path:
        """Move a file there, or beside it with a number if the place is taken; return where. Raises BadRequestError."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            number, place = 1, target
            while not _reserved(place):
                number += 1
                place = target.with_stem(f"{target.stem}-{number}")
            try:
                _moved(source, place)
            except OSError:
                place.unlink()
                raise
        except FileNotFoundError:
            raise BadRequestError(f"{source.name} {_GONE}") from None
        except OSError as error:
            words = f"{target}: {error.strerror}: let the gateway's user write there"
            raise BadRequestError(words) from None
        return place


def _moved(source: Path, place: Path) -> None:
    """Put a file in the place of an empty one; across file systems by a copy that is safe before the file goes."""
    try:
        source.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with source.open("rb") as read, place.open("wb") as written:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fsync(written.fileno())
        source.unlink()


def _reserved(place: Path) -> bool:
    """Make an empty file in this place; return False if there is one already."""
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _folders(root: Path) -> list[Path]:
    """Return the folders of classes in a folder, hidden ones and links left out."""
    if not root.is_dir():
        return []
    return [
        Path(one.path) for one in os.scandir(root) if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")
    ]
