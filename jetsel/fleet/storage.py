"""A repository that can be written: any folder or object store that fsspec opens."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jetsel.errors import ConfigError, RepositoryError
from jetsel.fleet.sources import Stream, missing
from jetsel.store import replace
from jetsel.store.files import TEMPORARY

EXTRA = "pip install 'jetsel[fleet]'"


@dataclass(frozen=True)
class Stored:
    """One object. name: from the repository's root on. modified_s: seconds since 1970."""

    name: str
    bytes: int
    modified_s: float


class Storage:
    """The objects of one repository; also a Source to read it by. Every method raises RepositoryError."""

    def __init__(self, url: str) -> None:
        """Raises ConfigError where the address cannot be opened, or its library is not installed."""
        if url.startswith(("http://", "https://")):
            raise ConfigError(f"{url}: is for reading alone: name the folder or object store behind it")
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

    @contextmanager
    def open(self, name: str, offset: int = 0) -> Iterator[tuple[Stream, int]]:
        """See jetsel.fleet.sources.Source; the object is read whole, as object stores have it."""
        with self._faults(name):
            content = self._fs.cat_file(self._path(name))
        yield io.BytesIO(content[offset:]), offset

    def size(self, name: str) -> int | None:
        """Return an object's bytes, None where there is none."""
        with self._faults(name):
            try:
                return int(self._fs.info(self._path(name))["size"])
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Have an object hold these bytes, or what it held before: one put, in a folder written aside and renamed."""
        with self._faults(name):
            if self._is_folder:
                path = Path(self._path(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                replace(path, content)
            else:
                self._fs.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self._faults(name):
            self._fs.rm_file(self._path(name))

    def list(self) -> list[Stored]:
        """Return every object of blobs/ and bundles/, and what a killed writer left aside."""
        with self._faults("blobs"):
            found: dict[str, Any] = self._fs.find(self._root, detail=True)
            return [
                Stored(name, int(about["size"]), self._fs.modified(path).timestamp())
                for path, about in found.items()
                for name in [path[len(self._root) :].lstrip("/")]
                if name.startswith(("blobs/", "bundles/", TEMPORARY))
            ]

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the name of every object of a folder, and of the folders in it, sorted."""
        with self._faults(folder):
            found = sorted(self._fs.find(self._path(folder)))
            return tuple(path[len(self._root) :].lstrip("/") for path in found if TEMPORARY not in path)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _faults(self, name: str) -> Iterator[None]:
        botocore = sys.modules.get("botocore.exceptions")  # S3's own, which are no OSError
        theirs = () if botocore is None else (botocore.BotoCoreError, botocore.ClientError)
        try:
            yield
        except FileNotFoundError:
            raise missing(name, self._url) from None
        except (OSError, NotImplementedError, *theirs) as fault:
            repair = "check the address, its credentials and the space there"
            raise RepositoryError(f"{self._url}: {name}: {fault}: {repair}") from fault
