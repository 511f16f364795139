"""Where a device reads a repository and writes its usage: a folder, or HTTP, with the standard library alone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn, Protocol

from jetsel.base.errors import ConfigError, RepositoryError
from jetsel.base.files import open_regular, repair_of, replace

HTTP_TIMEOUT_S = 30.0  # of a connection that brings nothing
ALL_S = 3600.0  # of all connections of a round; a slow download goes on in the next one

CUT = (OSError, HTTPException)
"""What reading raises if the way to the repository breaks; it is worth another try."""


class Stream(Protocol):
    """Bytes that arrive."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end; raises one of CUT."""


class Source(Protocol):
    """A repository that can be read."""

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """Give what a name holds from a byte on, and the byte where it really begins: `offset`, or 0.

        Raises RepositoryError if there is no such name, one of CUT if it may be there later.
        """


class FolderSource:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """See Source."""
        try:
            file = open_regular(self._folder / name)
        except FileNotFoundError:
            raise missing(name, str(self._folder)) from None
        file.seek(offset)
        return _Opened(file, offset)


class _Ending:
    """A connection that is cut at a moment of the monotonic clock, also while a server sends a byte now and then."""

    def __init__(self, *words: Any, until_s: float, **more: Any) -> None:
        super().__init__(*words, **more)
        self._until_s = until_s

    def connect(self) -> None:
        """Connect, and have a thread cut the connection when its time is over."""
        super().connect()  # type: ignore[misc]  # of the class beside this one
        cut = threading.Timer(max(0.0, self._until_s - time.monotonic()), _cut, (self.sock,))  # type: ignore[attr-defined]
        cut.daemon = True
        cut.start()


class _Http(_Ending, HTTPConnection):
    pass


class _Https(_Ending, HTTPSConnection):
    pass


class _Connecting(urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.FTPHandler):
    """Opens http:// and https:// by connections that end in time, and ftp://, where a server may redirect to, never."""

    def __init__(self, until_s: float) -> None:
        super().__init__()
        self._until_s = until_s

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Http, until_s=self._until_s), request)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Https, until_s=self._until_s), request)

    def ftp_open(self, request: urllib.request.Request) -> NoReturn:
        raise OSError(f"the server redirects to {request.full_url}")


def ask(request: urllib.request.Request, token: str | None, until_s: float) -> HTTPResponse:
    """Send a request whose connection is cut at this moment of the monotonic clock, and return the reply.

    token: sent as a bearer's (RFC 6750), to the server of the address alone: none that it redirects to gets it.
    Raises HTTPError for a reply that is an error, one of CUT if there is none.
    """
    if token is not None:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    if time.monotonic() >= until_s:
        raise OSError("it takes too long")
    opener = urllib.request.build_opener(_Connecting(until_s))
    try:
        reply: HTTPResponse = opener.open(request, timeout=HTTP_TIMEOUT_S)
    except ValueError as fault:
        raise OSError(f"the server redirects to an invalid address: {fault}") from None
    return reply


class HttpSource:
    """A repository behind a web server. Servers that know no ranges begin from the start each time."""

    def __init__(self, url: str, token: str | None = None, all_s: float = ALL_S) -> None:
        """token: see ask. all_s: how long all connections may take together, counted from now."""
        self._url, self._token, self._until_s = url.rstrip("/"), token, time.monotonic() + all_s

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[tuple[Stream, int]]:
        """See Source."""
        request = urllib.request.Request(f"{self._url}/{name}", headers={"Accept-Encoding": "identity"})
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            reply = ask(request, self._token, self._until_s)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (403, 404, 410):
                raise missing(name, self._url) from None
            if error.code == 416 and offset:  # a range past its end: what we have is no part of it, and begins anew
                return self.open(name)
            raise OSError(f"the server returned {error.code}") from None
        begins = offset if reply.status == 206 else 0
        if reply.status == 206 and not reply.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
            reply.close()
            raise OSError("the server sends another range than requested")
        return _Opened(reply, begins)


class _Opened:
    """A stream and where it begins, closed at the end of a `with`."""

    def __init__(self, stream: HTTPResponse | BufferedReader, begins: int) -> None:
        self._stream, self._begins = stream, begins

    def __enter__(self) -> tuple[Stream, int]:
        return self, self._begins

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int, /) -> bytes:
        """See Stream: what has arrived is never lost to a reset that follows, and a chunk's claimed size is no matter.

        http.client itself takes a connection that was cut for the end.
        """
        chunk = self._stream.read1(size)
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
    raise ConfigError(f"{url}: a device reads from a folder, http:// or https://: use one of them")


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended by itself
        connected.shutdown(socket.SHUT_RDWR)


def missing(name: str, where: str) -> RepositoryError:
    """Return the error for what a repository does not have."""
    return RepositoryError(f"{where}: has no {name}: check the address, or make a repository with jetsel repo init")


class Sink(Protocol):
    """A repository that can be written to."""

    def put(self, name: str, content: bytes) -> None:
        """Have a name hold these bytes; raises RepositoryError if it may not, and then it may hold them or not."""


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
                f"{self._url}/{name}: the server returned {error.code} to PUT: allow this device to write there"
            ) from None
        except (OSError, HTTPException) as fault:
            raise RepositoryError(f"{self._url}/{name}: not sent ({fault}): it will be sent again later") from fault


def sink_of(url: str, token: str | None = None) -> Sink:
    """Return the folder or web server of this address; raises ConfigError for any other."""
    folder = folder_of(url)
    return HttpSink(url, token) if folder is None else FolderSink(folder)
