"""A repository from a device's side, to read it and to write usage: a folder, or HTTP."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO, Protocol

from jetsel.addons.http_client import CONNECTION_ERRORS, send_request
from jetsel.base.errors import ConfigError, RepositoryError
from jetsel.base.files import open_regular, repair_of, replace

ALL_S = 3600.0  # of all connections of a round; the next round continues a slow download


class RepositorySource(Protocol):
    """A repository that can be read."""

    def open(self, name: str, offset: int = 0) -> tuple[BinaryIO, int]:
        """Return an object's bytes from an offset on, and the offset where they begin: `offset`, or 0.

        This and its reads raise CONNECTION_ERRORS if a later try may succeed, RepositoryError for a missing object.
        """


class FolderRepository:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str, offset: int = 0) -> tuple[BinaryIO, int]:
        """See RepositorySource."""
        try:
            file = open_regular(self._folder / name)
        except FileNotFoundError:
            raise missing_object(name, str(self._folder)) from None
        file.seek(offset)
        return file, offset

    def put(self, name: str, content: bytes) -> None:
        """Write an object; if it raises RepositoryError, the object may have been written or not."""
        path = self._folder / name
        try:
            if not self._folder.is_dir():  # a share may not be mounted, and then the bytes would be lost
                raise RepositoryError(f"{self._folder}: is not a folder: mount it, or choose another one")
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, content)
        except OSError as fault:
            raise RepositoryError(f"{path}: not written ({fault.strerror}): {repair_of(fault)}") from fault


class HttpRepository:
    """A repository behind a web server, which must accept PUT to be written (RFC 9110, section 9.3.4).

    Servers without range requests start from the beginning each time.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        """token: see send_request. All reading connections together end ALL_S after now."""
        self._url, self._token, self._until_s = url.rstrip("/"), token, time.monotonic() + ALL_S

    def open(self, name: str, offset: int = 0) -> tuple[BinaryIO, int]:
        """See RepositorySource."""
        request = urllib.request.Request(f"{self._url}/{name}", headers={"Accept-Encoding": "identity"})
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            reply = send_request(request, self._token, self._until_s)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (403, 404, 410):
                raise missing_object(name, self._url) from None
            if error.code == 416 and offset:  # the bytes that we have are of another object: begin anew
                return self.open(name)
            raise OSError(f"the server returned {error.code}") from None
        begins = offset if reply.status == 206 else 0
        if reply.status == 206 and not reply.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
            reply.close()
            raise OSError("the server sends another range than requested")
        return reply, begins

    def put(self, name: str, content: bytes) -> None:
        """See FolderRepository."""
        request = urllib.request.Request(f"{self._url}/{name}", content, method="PUT")
        try:
            send_request(request, self._token, time.monotonic() + ALL_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            raise RepositoryError(
                f"{self._url}/{name}: the server returned {error.code} to PUT: allow this device to write there"
            ) from None
        except CONNECTION_ERRORS as fault:
            raise RepositoryError(f"{self._url}/{name}: not sent ({fault}): it will be sent again later") from fault


Repository = FolderRepository | HttpRepository


def repository_of(url: str, token: str | None = None) -> Repository:
    """Return the folder or web server at this address; raises ConfigError for other addresses."""
    scheme, separator, rest = url.partition("://")
    if scheme in ("http", "https") and separator:
        return HttpRepository(url, token)
    if separator and scheme != "file":
        raise ConfigError(f"{url}: a device reads from a folder, http:// or https://: use one of them")
    return FolderRepository(Path(rest if separator else url))


def missing_object(name: str, where: str) -> RepositoryError:
    """Return the error for an object that a repository does not have."""
    return RepositoryError(f"{where}: has no {name}: check the address, or make a repository with jetsel repo init")
