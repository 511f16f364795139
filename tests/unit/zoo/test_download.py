"""A file is fetched whole from a real server, or refused with what went wrong."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo.download import download

CONTENT = bytes(range(256)) * 5000
HASH = hashlib.sha256(CONTENT).hexdigest()[:8]


@pytest.fixture
def serve() -> Iterator[object]:
    """Answer one connection with these bytes, then close it; gives the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:

        def answer(reply: bytes) -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        def begin(reply: bytes) -> str:
            pool.submit(answer, reply)
            return f"http://127.0.0.1:{listener.getsockname()[1]}/file"

        yield begin


def test_a_file_arrives_whole(serve, tmp_path: Path) -> None:
    download(serve(b"HTTP/1.0 200 OK\r\n\r\n" + CONTENT), tmp_path / "file", HASH)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n" + CONTENT[:-1], f"where {HASH} was published"),
        (b"HTTP/1.0 404 Gone Fishing\r\n\r\n", "404 Gone Fishing"),
        (b"", "closed connection"),
    ],
    ids=["cut short", "not there", "nothing"],
)
def test_anything_else_is_refused(serve, tmp_path: Path, answer: bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        download(serve(answer), tmp_path / "file", HASH)
    assert "--from URL" in str(raised.value)


@pytest.mark.parametrize("url", ["nowhere", "gopher://host/file", "http:///file"])
def test_addresses_that_lead_nowhere_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ManifestError, match="--from URL"):
        download(url, tmp_path / "file", HASH)


def test_a_folder_of_this_machine_will_do(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(CONTENT)
    download((tmp_path / "there").as_uri(), tmp_path / "here", HASH)
    assert (tmp_path / "here").read_bytes() == CONTENT
