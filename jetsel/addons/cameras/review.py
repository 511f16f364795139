"""Review of the images that `jetsel watch --save` kept: each is moved to its class's folder, or set aside."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from jetsel.base import files
from jetsel.base.errors import BadRequestError, ConfigError, ImageTooLargeError
from jetsel.base.names import SUFFIXES, exact, folder_name, system_kind

Verdict = Literal["right", "wrong", "discard"]
DISCARDED = ".discarded"  # calibrations skip hidden folders
_GONE = "is not pending: it was decided already, or removed; reload the page"
MOST_BYTES = 16_000_000  # of one image: the daemon's default limit
_INVALID_CHARACTERS = re.compile("[\0-\x1f\x7f\ud800-\udfff]")  # in names: control characters, and invalid UTF-8
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PARTIAL_COPY = f"{files.TEMPORARY}review"  # name of an incomplete copy; the next copy in the folder replaces it


class Pending(Struct, frozen=True):
    """The image to decide on. image: its path in the folder, None if none is left. label: of the models.

    classes: identifiers of the existing folders.
    """

    image: str | None
    identifier: str | None
    label: str | None
    left: int
    classes: list[str]
    can_undo: bool


class ReviewDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """The owner's decision on an image. identifier: its class, if the verdict is `wrong`."""

    image: str
    verdict: Verdict
    identifier: str | None = None


class Review:
    """Moves files from one folder to another; nothing is deleted or overwritten. Any thread may call.

    No link below the two folders is followed, so that users who may write there cannot have other files read or moved.
    """

    def __init__(self, folder: Path, reviewed: Path | None) -> None:
        """reviewed: None for the folder's name with `-reviewed`. Raises ConfigError."""
        self._folder = folder.resolve()
        self._reviewed = (reviewed or folder.with_name(f"{folder.resolve().name}-reviewed")).resolve()
        try:
            next(self._folder.iterdir(), None)
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigError(f"{folder}: there is no such folder: `jetsel watch --save {folder}` makes it") from None
        except OSError as error:
            repair = files.repair_of(error, "name another folder")
            raise ConfigError(f"{folder}: {error.strerror}: {repair}") from None
        if self._reviewed.is_relative_to(self._folder) or self._folder.is_relative_to(self._reviewed):
            raise ConfigError(f"--reviewed {self._reviewed}: name a folder beside {folder}, neither in it nor above it")
        self._lock = threading.Lock()
        self._last: tuple[Path, Path] | None = None  # source and target

    def pending(self, after: str | None = None) -> Pending:
        """Return the image after this one, in the order of the paths; the first one if there is none."""
        with self._lock:
            paths = self._images()
            classes = self._classes()
            following = next((one for one in paths if after is not None and one > after), None)
            image = following or (paths[0] if paths else None)
            can_undo = self._last is not None
        if image is None:
            return Pending(None, None, None, 0, classes, can_undo)
        identifier, _, name = image.rpartition("/")
        return Pending(image, identifier, name.rpartition("-")[0] or name, len(paths), classes, can_undo)

    def read(self, image: str) -> bytes:
        """Return an image's content; raises BadRequestError or ImageTooLargeError."""
        path = self._path(image)
        try:
            with self._open_folder(path) as folder:
                return files.read_bounded(Path(path.name), MOST_BYTES, folder)
        except OSError as error:
            kind = ImageTooLargeError if error.errno == errno.EFBIG else BadRequestError
            raise kind(f"{image} cannot be shown: {error.strerror}") from None

    def decide(self, decision: ReviewDecision) -> None:
        """Move an image to its class or aside; if it raises BadRequestError, the image stays."""
        source = self._path(decision.image)
        with self._lock:
            target = self._reviewed / self._folder_of(decision, source.parent.name) / source.name
            self._last = source, self._move(source, target)

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
        return sorted(
            f"{folder}/{entry.name}"
            for folder in _classes_in(self._folder)
            for entry in _entries(self._folder / folder)
            if entry.is_file(follow_symlinks=False) and _is_image(entry.name)
        )

    def _classes(self) -> list[str]:
        return sorted({*_classes_in(self._folder), *_classes_in(self._reviewed)}, key=str.casefold)

    def _path(self, image: str) -> Path:
        """Return the path of an image that may be pending; raises BadRequestError for names that cannot be."""
        folder, _, name = image.partition("/")
        if not _is_class(folder) or not _is_image(name):
            raise BadRequestError(f"{image[:200]} {_GONE}")
        return self._folder / folder / name

    def _folder_of(self, decision: ReviewDecision, current_class: str) -> str:
        """Return the target folder for an image whose class is `own`; raises BadRequestError."""
        if decision.verdict != "wrong":
            if decision.identifier not in (None, current_class):
                raise BadRequestError("identifier: leave it out unless the verdict is wrong")
            return current_class if decision.verdict == "right" else f"{DISCARDED}/{current_class}"
        name = exact(decision.identifier or "")
        same_names = [one for one in self._classes() if exact(one) == name]
        if same_names:
            return decision.identifier if decision.identifier in same_names else same_names[0]
        if not _is_class(name) or folder_name(name) != name:
            raise BadRequestError("identifier: give the class's identifier, without / and no dot in front")
        return name

    @contextmanager
    def _open_folder(self, path: Path, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of a file's folder; raises OSError, with ENOTDIR if there is a link on the way."""
        root = self._folder if path.is_relative_to(self._folder) else self._reviewed
        descriptor = os.open(root, _FOLDER_FLAGS)
        try:
            for name in path.parent.relative_to(root).parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=descriptor)
                outer, descriptor = descriptor, os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(outer)
            yield descriptor
        finally:
            os.close(descriptor)

    def _move(self, source: Path, target: Path) -> Path:
        """Move a file, to a numbered name if the name is taken; return its path. Raises BadRequestError."""
        try:
            self._reviewed.mkdir(parents=True, exist_ok=True)
            with self._open_folder(source) as source_folder:
                if not stat.S_ISREG(os.stat(source.name, dir_fd=source_folder, follow_symlinks=False).st_mode):
                    raise FileNotFoundError  # before a folder is made for it
                with self._open_folder(target, make=True) as target_folder:
                    place = target.with_name(_free_name(target.name, target_folder))
                    _rename(source.name, source_folder, place.name, target_folder)
        except FileNotFoundError:
            raise BadRequestError(f"{source.name} {_GONE}") from None
        except OSError as error:
            is_link = error.errno in (errno.ENOTDIR, errno.ELOOP)
            repair = "links are not followed" if is_link else files.repair_of(error, "name another one with --reviewed")
            raise BadRequestError(f"{target}: {error.strerror}: {repair}") from None
        return place


def _is_class(name: str) -> bool:
    """Return whether a folder of this name may be a class."""
    return bool(name) and not _INVALID_CHARACTERS.search(name) and system_kind(name, is_folder=True) is None


def _is_image(name: str) -> bool:
    """Return whether a file of this name may be an image to review."""
    is_odd = "/" in name or _INVALID_CHARACTERS.search(name) or system_kind(name, is_folder=False) is not None
    return not is_odd and Path(name).suffix.lower() in SUFFIXES


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; none if it does not exist or may not be read."""
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _classes_in(root: Path) -> list[str]:
    return [one.name for one in _entries(root) if one.is_dir(follow_symlinks=False) and _is_class(one.name)]


def _free_name(name: str, folder: int) -> str:
    """Return this name, or one with a number that no file in the folder has."""
    number, path = 1, Path(name)
    while os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False):
        number += 1
        name = f"{path.stem}-{number}{path.suffix}"
    return name


def _rename(source: str, source_folder: int, name: str, target_folder: int) -> None:
    """Move a file to another name and folder; on another file system it is copied first. Raises OSError.

    source_folder, target_folder: descriptors of the open folders.
    """
    try:
        os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=target_folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, source_folder, target_folder)
        os.rename(_PARTIAL_COPY, name, src_dir_fd=target_folder, dst_dir_fd=target_folder)
        os.unlink(source, dir_fd=source_folder)


def _copy(source: str, source_folder: int, target_folder: int) -> None:
    """Copy a file to the name _ASIDE in the target folder, and flush it; if it raises OSError, nothing is left."""
    with suppress(FileNotFoundError):
        os.unlink(_PARTIAL_COPY, dir_fd=target_folder)
    opened = os.open(_PARTIAL_COPY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=target_folder)
    try:
        with os.fdopen(opened, "wb") as written, files.open_regular(Path(source), source_folder) as read:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fsync(opened)
    except OSError:
        os.unlink(_PARTIAL_COPY, dir_fd=target_folder)
        raise
