"""Where a device writes what it tells of itself: a folder, or HTTP by PUT, with the standard library alone."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

from jetsel.base.errors import RepositoryError
from jetsel.base.files import repair_of, replace
from jetsel.fleet.sources import ALL_S, ask, folder_of


class Sink(Protocol):
    """A repository that can be written to."""

    def put(self, name: str, content: bytes) -> None:
        """Have a name hold these bytes; raises RepositoryError where it may not, and then it may hold them or not."""


class FolderSink:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: bytes) -> None:
        """See Sink."""
        path = self._folder / name
        try:
            if not self._folder.is_dir():  # a share that is not mounted: what was written there would be lost
                raise RepositoryError(f"{self._folder}: is not a folder: mount it, or choose another one")
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, content)
        except OSError as fault:
            raise RepositoryError(f"{path}: not written ({fault.strerror}): {repair_of(fault)}") from fault


class HttpSink:
    """A repository behind a web server that takes PUT: an object store, or WebDAV (RFC 9110, section 9.3.4)."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url, self._token = url.rstrip("/"), token

    def put(self, name: str, content: bytes) -> None:
        """See Sink."""
        request = urllib.request.Request(f"{self._url}/{name}", content, method="PUT")
        try:
            ask(request, self._token, time.monotonic() + ALL_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            raise RepositoryError(
                f"{self._url}/{name}: the server answers {error.code} to PUT: allow this device to write there"
            ) from None
        except (OSError, HTTPException) as fault:
            raise RepositoryError(f"{self._url}/{name}: not sent ({fault}): it is sent again later") from fault


def sink_of(url: str, token: str | None = None) -> Sink:
    """Return the folder or web server of this address; raises ConfigError for any other."""
    folder = folder_of(url)
    return HttpSink(url, token) if folder is None else FolderSink(folder)
