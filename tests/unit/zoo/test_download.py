"""A file is fetched whole from a real server, or refused with what went wrong."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo.download import download

CONTENT = bytes(range(256)) * 5000
HASH = hashlib.sha256(CONTENT).hexdigest()[:8]


@pytest.fixture
def serve() -> Iterator[object]:
    """Answer one connection with these bytes, then close it; gives the address."""
    threads: list[threading.Thread] = []
    listeners: list[socket.socket] = []

    def begin(reply: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/file"

    yield begin
    for thread in threads:
        thread.join(30)
    for listener in listeners:
        listener.close()


def reply(status: str, content: bytes, length: int | None = None) -> bytes:
    size = len(content) if length is None else length
    return f"HTTP/1.0 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + content


def test_a_file_arrives_whole(serve, tmp_path: Path) -> None:
    download(serve(reply("200 OK", CONTENT)), tmp_path / "file", HASH)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply("200 OK", CONTENT[:-1], len(CONTENT)), "where .* was published|IncompleteRead"),
        (reply("200 OK", CONTENT + b"x"), f"where {HASH} was published"),
        (reply("404 Gone Fishing", b"no"), "404 Gone Fishing"),
        (b"", "closed connection"),
        (b"SSH-2.0-OpenSSH\r\n", "SSH-2.0-OpenSSH"),
    ],
    ids=["cut short", "another file", "not there", "nothing", "no web server"],
)
def test_anything_else_is_refused(serve, tmp_path: Path, answer: bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        download(serve(answer), tmp_path / "file", HASH)
    assert "--from URL" in str(raised.value)


@pytest.mark.parametrize("url", ["nowhere", "http://127.0.0.1:9/file", "gopher://host/file", "http:///file"])
def test_addresses_that_lead_nowhere_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ManifestError, match="--from URL"):
        download(url, tmp_path / "file", HASH)


def test_a_folder_of_this_machine_will_do(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(CONTENT)
    download((tmp_path / "there").as_uri(), tmp_path / "here", HASH)
    assert (tmp_path / "here").read_bytes() == CONTENT
