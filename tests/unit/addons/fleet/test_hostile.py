"""A hostile repository against a device's side: secrets stay here, and nothing hangs or fills the memory."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from jetsel.addons.fleet.documents import Entry, Plan, PlannedFamily
from jetsel.addons.fleet.reading import read_bundle, read_index, read_plan
from jetsel.addons.fleet.signing import opened, sign
from jetsel.addons.fleet.sources import FolderSource, HttpSource
from jetsel.addons.fleet.storage import Storage
from jetsel.base.errors import RepositoryError
from tests.unit.addons.fleet.published import Pair, publish


@contextmanager
def replying(*replies: bytes, drips: bool = False, resets_at: Event | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """Give a server's address, and what it was sent; it replies to each connection in turn, to the last for ever."""
    listener, requests = socket.create_server(("127.0.0.1", 0)), []

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, suppress(ConnectionError):  # the reader may have had enough
                requests.append(peer.recv(65536))
                peer.sendall(replies[min(len(requests), len(replies)) - 1])
                if resets_at is not None:
                    resets_at.wait(60)
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if drips:
                    peer.recv(1)  # nothing more until the other side hangs up

    thread = Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_redirect_to_another_server_gets_no_token() -> None:
    with replying(b"HTTP/1.0 200 OK\r\n\r\n{}") as (other, elsewhere):
        redirect = f"HTTP/1.0 302 Found\r\nLocation: {other}/x\r\n\r\n".encode()
        with replying(redirect) as (url, here), HttpSource(url, "secret").open("a") as (stream, _):
            assert stream.read(9) == b"{}"
    assert b"Bearer secret" in here[0]
    assert b"secret" not in elsewhere[0]


def test_a_redirect_to_no_address_is_a_broken_way() -> None:
    with (
        replying(b"HTTP/1.0 302 Found\r\nLocation: http://[::1/x\r\n\r\n") as (url, _),
        pytest.raises(RepositoryError, match="try again"),
    ):
        read_index(HttpSource(url), [])


def test_a_redirect_to_ftp_is_not_followed() -> None:
    with (
        replying(b"HTTP/1.0 302 Found\r\nLocation: ftp://127.0.0.1:1/x\r\n\r\n") as (url, _),
        pytest.raises(OSError, match="redirects to ftp"),
    ):
        HttpSource(url).open("a")


def test_a_chunk_of_less_than_no_size_is_read_in_pieces() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"
    with replying(head + bytes(3_000_000)) as (url, _), HttpSource(url).open("a") as (stream, _):
        assert len(stream.read(1000)) <= 65536


def test_a_server_that_sends_without_end_is_cut_in_time() -> None:
    for reply in (b"HTTP/1.0 200 OK\r\nX-", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{"):
        with replying(reply, drips=True) as (url, _), pytest.raises(RepositoryError, match=r"too long|truncated"):
            read_index(HttpSource(url, all_s=0.3), [])


def test_a_pipe_in_the_place_of_a_plan_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    os.mkfifo(tmp_path / "plans/one.json")
    with pytest.raises(RepositoryError, match="not a regular file"):
        read_plan(FolderSource(tmp_path), "one", [])


def test_a_document_of_another_version_than_the_index_names_is_refused(repository: Path, key: Pair) -> None:
    source = FolderSource(repository)
    later = msgspec.structs.replace(read_index(source, [key.public])[0].bundles[0], version=2)
    with pytest.raises(RepositoryError, match="does not match the index"):
        read_bundle(source, later, [key.public])


def test_a_serial_that_no_line_of_usage_can_hold_is_refused(key: Pair) -> None:
    entry = Entry(family="pets", version=1, sha256="0" * 64)
    plan = Plan(device="one", serial=2**53 + 1, families=(PlannedFamily(bundle=entry, models=("small",)),))
    with pytest.raises(RepositoryError, match="serial"):
        opened(sign(plan, [key.private]), Plan, [key.public], "plan")


def test_a_damaged_blob_of_the_right_size_is_published_again(repository: Path, key: Pair) -> None:
    blob = next((repository / "blobs").iterdir())
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert publish(Storage(str(repository)), repository.parent / "models", key) is not None
    assert blob.read_bytes() == whole


def test_what_has_arrived_is_kept_when_the_connection_is_reset() -> None:
    head, opened_here = b"HTTP/1.0 200 OK\r\nContent-Length: 9999\r\n\r\n", Event()
    with (
        replying(head + bytes(100), resets_at=opened_here) as (url, _),
        HttpSource(url).open("a") as (stream, _),
    ):
        opened_here.set()
        assert 0 < len(stream.read(1 << 20)) <= 100
