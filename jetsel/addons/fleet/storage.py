"""A repository to write: any folder or object store that fsspec opens."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from jetsel.addons.fleet.sources import missing_object
from jetsel.base.errors import ConfigError, RepositoryError, pip_install
from jetsel.base.files import TEMPORARY, replace

EXTRA = pip_install("fleet")


@dataclass(frozen=True)
class Stored:
    """One object. name: path from the repository's root. modified_s: seconds since 1970."""

    name: str
    bytes: int
    modified_s: float


class Storage:
    """The objects of one repository, also as a RepositorySource. Every method raises RepositoryError."""

    def __init__(self, url: str) -> None:
        """Raises ConfigError if the address cannot be opened, or a library is not installed."""
        if url.startswith(("http://", "https://")):
            raise ConfigError(f"{url}: is read-only: name the folder or object store behind it")
        try:
            import fsspec
            from fsspec.implementations.local import LocalFileSystem
        except ModuleNotFoundError:
            raise ConfigError(f"{url}: writing a repository needs fsspec: {EXTRA}") from None
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as fault:
            raise ConfigError(f"{url}: {fault}: {EXTRA}") from None
        except ValueError as fault:
            raise ConfigError(f"{url}: {fault}: name a folder, or an address such as s3://BUCKET/FOLDER") from None
        self._url = url
        self._is_folder = isinstance(self._fs, LocalFileSystem)

    def open(self, name: str, offset: int = 0) -> tuple[BinaryIO, int]:
        """See jetsel.addons.fleet.sources.RepositorySource; object stores always return the whole object."""
        with self._as_repository_errors(name):
            content = self._fs.cat_file(self._path(name))
        return io.BytesIO(content[offset:]), offset

    def size(self, name: str) -> int | None:
        """Return an object's size in bytes, None if it does not exist."""
        with self._as_repository_errors(name):
            try:
                return int(self._fs.info(self._path(name))["size"])
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write an object completely or not at all: with one put, or in a folder by renaming a finished file."""
        with self._as_repository_errors(name):
            if self._is_folder:
                path = Path(self._path(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                replace(path, content)
            else:
                self._fs.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self._as_repository_errors(name):
            self._fs.rm_file(self._path(name))

    def now_s(self) -> float:
        """Return the time by the clock that stamps written objects, which may differ from this machine's clock."""
        name = f"{TEMPORARY}clock"
        self.write(name, b"")
        with self._as_repository_errors(name):
            written_s = self._modified_s(self._path(name), self._fs.info(self._path(name)))
        self.remove(name)
        return written_s

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names of all objects in a folder and its subfolders, sorted."""
        return tuple(sorted(one.name for one in self.stored(folder) if TEMPORARY not in one.name))

    def stored(self, folder: str) -> Sequence[Stored]:
        """Return all objects in a folder and its subfolders."""
        with self._as_repository_errors(folder):
            entries: dict[str, Any] = self._fs.find(self._path(folder).rstrip("/"), detail=True)
            return [
                Stored(path[len(self._root) :].lstrip("/"), int(metadata["size"]), self._modified_s(path, metadata))
                for path, metadata in entries.items()
            ]

    def contents(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the content of these objects, read in parallel; unreadable ones are left out."""
        with self._as_repository_errors(names[0] if names else ""):
            contents: dict[str, bytes] = self._fs.cat([self._path(name) for name in names], on_error="omit")
            return {path[len(self._root) :].lstrip("/"): content for path, content in contents.items()}

    def address(self, name: str) -> str:
        """Return an object's path in a folder, or its address in `filesystem`."""
        path = self._path(name)
        return path if self._is_folder else str(self._fs.unstrip_protocol(path))

    @property
    def filesystem(self) -> Any:
        """The file system of fsspec; None for a folder."""
        return None if self._is_folder else self._fs

    def _modified_s(self, path: str, metadata: dict[str, Any]) -> float:
        """Return when an object was written: by the listing, else by another request."""
        modified = metadata.get("mtime") or metadata.get("LastModified")
        if isinstance(modified, (int, float)):
            return float(modified)
        return float((modified or self._fs.modified(path)).timestamp())

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _as_repository_errors(self, name: str) -> Iterator[None]:
        botocore = sys.modules.get("botocore.exceptions")  # s3's own errors, which are not OSError
        theirs = () if botocore is None else (botocore.BotoCoreError, botocore.ClientError)
        try:
            yield
        except FileNotFoundError:
            raise missing_object(name, self._url) from None
        except (OSError, NotImplementedError, *theirs) as fault:
            repair = "check the address, its credentials and the space there"
            raise RepositoryError(f"{self._url}: {name}: {fault}: {repair}") from fault
