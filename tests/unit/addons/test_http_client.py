"""Servers that nobody can rely on: whatever they send, an exchange ends in time and its body is bounded."""

import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from socket import SHUT_RDWR, create_server
from threading import Event, Thread

import pytest

from jetsel.addons.http_client import CONNECTION_ERRORS, Http, Https, read_all, send_request

MOST = 100_000
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def replying(begin: bytes, then: bytes = b"", pause_s: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """Give the port of a server that replies with some bytes, and then with others for ever, with pauses.

    And the requests that it was sent.
    """
    listener, requests, is_over = create_server(("127.0.0.1", 0)), list[bytes](), Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, suppress(OSError):
                    requests.append(peer.recv(65536))
                    peer.sendall(begin)
                    while then and not is_over.wait(pause_s):
                        peer.sendall(then)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], requests
    finally:
        is_over.set()
        listener.shutdown(SHUT_RDWR)
        listener.close()
        thread.join()


def got(kind: Callable[..., HTTPConnection], port: int, within_s: float, **more: object) -> bytes:
    connection = kind("127.0.0.1", port, until_s=time.monotonic() + within_s, **more)
    try:
        connection.request("GET", "/")
        return read_all(connection.getresponse(), MOST)  # type: ignore[arg-type]
    finally:
        connection.close()


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.",
        HEAD + b"X-",
        HEAD + b"Content-Length: 9999\r\n\r\n",
        HEAD + b"\r\n",
        CHUNKED + b"ffff\r\n",
        CHUNKED,
    ],
    ids=["status", "header", "body", "body of any length", "chunk", "size of a chunk"],
)
def test_a_byte_now_and_then_prolongs_nothing(begin: bytes) -> None:
    with replying(begin, b"0", 0.01) as (port, _), pytest.raises(OSError, match=r"too long|timed out"):
        got(Http, port, 0.3)


def test_nor_in_the_handshake_of_tls() -> None:
    with replying(b"\x16\x03\x03\x3f\xff", b"0", 0.01) as (port, _), pytest.raises(OSError, match="timed out"):
        got(Https, port, 0.3, context=ssl.create_default_context())


@pytest.mark.parametrize(
    "begin",
    [CHUNKED + b"-1\r\n", CHUNKED + b"fffffffff\r\n", HEAD + b"Content-Length: -5\r\n\r\n", HEAD + b"\r\n",
     HEAD + b"Content-Length: 99999999999999999999\r\n\r\n"],
    ids=["chunk of -1", "huge chunk", "negative length", "no length", "huge length"],
)  # fmt: skip
def test_a_body_without_end_is_left_at_the_bound(begin: bytes) -> None:
    with replying(begin, bytes(65536)) as (port, _), pytest.raises(OSError, match=f"over {MOST} bytes"):
        got(Http, port, 60.0)


def test_the_body_of_a_redirect_is_not_read_to_its_end() -> None:
    with replying(HEAD + b"Content-Length: 2\r\n\r\nok") as (other, _):
        location = f"Location: http://127.0.0.1:{other}/\r\n\r\n".encode()
        with (
            replying(b"HTTP/1.1 302 Found\r\n" + location, bytes(65536)) as (port, _),
            send_request(urllib.request.Request(f"http://127.0.0.1:{port}/"), None, time.monotonic() + 60.0) as reply,
        ):
            assert read_all(reply, MOST) == b"ok"


@pytest.mark.parametrize(
    "reply",
    [b"", b"\xff\xfe\r\n\r\n", HEAD + b"Content-Length: 9\r\n\r\n{", CHUNKED + b"zz\r\n", CHUNKED + b"9\r\n{",
     HEAD + b"X: y\r\n" * 200],
    ids=["nothing", "no HTTP", "cut", "no chunk", "cut chunk", "200 headers"],
)  # fmt: skip
def test_what_is_no_whole_reply_is_an_error_that_callers_expect(reply: bytes) -> None:
    with replying(reply) as (port, _), pytest.raises(CONNECTION_ERRORS):
        got(Http, port, 60.0)


def test_a_whole_reply_is_returned_with_a_deadline_that_has_not_come() -> None:
    whole = b"".join(b"%x\r\n%s\r\n" % (n, bytes(n)) for n in (1, 16_384, 50_000)) + b"0\r\n\r\n"
    with replying(CHUNKED + whole) as (port, _):
        assert got(Http, port, 60.0) == bytes(66_385)
    with replying(b"") as (port, _), pytest.raises(TimeoutError, match="too long"):
        got(Http, port, 0.0)
