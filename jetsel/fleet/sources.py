"""Where a device reads a repository from: a folder, or HTTP, with the standard library alone."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, Protocol

from jetsel.errors import ConfigError, RepositoryError

HTTP_TIMEOUT_S = 30.0  # of a connection that brings nothing

CUT = (OSError, HTTPException)
"""What reading raises where the way to the repository breaks; it is worth another try."""


class Stream(Protocol):
    """Bytes that arrive."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end; raises one of CUT."""


class Source(Protocol):
    """A repository that can be read."""

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """Give what a name holds from a byte on, and the byte where it really begins: `offset`, or 0.

        Raises RepositoryError where there is no such name, one of CUT where it may be there later.
        """


class FolderSource:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """See Source."""
        try:
            file = (self._folder / name).open("rb")
        except FileNotFoundError:
            raise missing(name, str(self._folder)) from None
        file.seek(offset)
        return _Opened(file, offset)


class HttpSource:
    """A repository behind a web server. Servers that know no ranges begin from the start each time."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """token: sent as a bearer's (RFC 6750)."""
        self._url = url.rstrip("/")
        self._headers = {"Accept-Encoding": "identity"} | authorization(token)

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """See Source."""
        request = urllib.request.Request(f"{self._url}/{name}", headers=self._headers)
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            reply: HTTPResponse = urllib.request.urlopen(
                request, timeout=HTTP_TIMEOUT_S
            )  # its scheme was checked by source_of
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (403, 404, 410):
                raise missing(name, self._url) from None
            if error.code == 416 and offset:  # a range past its end: what we have is no part of it, and begins anew
                return self.open(name)
            raise OSError(f"the server answers {error.code}") from None
        begins = offset if reply.status == 206 else 0
        if reply.status == 206 and not reply.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
            reply.close()
            raise OSError("the server sends another range than was asked for")
        return _Opened(reply, begins)


class _Opened:
    """A stream and where it begins, closed at the end of a `with`."""

    def __init__(self, stream: HTTPResponse | BinaryIO, begins: int) -> None:
        self._stream, self._begins = stream, begins

    def __enter__(self) -> tuple[Stream, int]:
        return self, self._begins

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int, /) -> bytes:
        """See Stream; http.client itself takes a connection that was cut for the end."""
        chunk = self._stream.read(size)
        if not chunk and getattr(self._stream, "length", None):
            raise OSError("the connection was cut")
        return chunk


def source_of(url: str, token: str | None = None) -> Source:
    """Return the folder or web server of this address; raises ConfigError for any other."""
    folder = folder_of(url)
    return HttpSource(url, token) if folder is None else FolderSource(folder)


def folder_of(url: str) -> Path | None:
    """Return the folder that an address names, None for a web server; raises ConfigError for any other."""
    scheme, found, rest = url.partition("://")
    if not found:
        return Path(url)
    if scheme == "file":
        return Path(rest)
    if scheme in ("http", "https"):
        return None
    raise ConfigError(f"{url}: a device knows a folder, http:// or https://: name one of them")


def authorization(token: str | None) -> dict[str, str]:
    """Return the header that a bearer's token is sent in."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def missing(name: str, where: str) -> RepositoryError:
    """Return the error for what a repository does not have."""
    return RepositoryError(f"{where}: has no {name}: check the address, or make a repository with jetsel repo init")
