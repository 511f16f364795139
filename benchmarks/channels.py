"""One client's connection to either server, with the fewest steps that its protocol allows."""

from __future__ import annotations

import json
import socket
from typing import Any, Protocol
from urllib.parse import urlsplit

import zmq

from jetsel.wire import PROTOCOL_VERSION, Classify, encode


class Channel(Protocol):
    """A connection with at most one request outstanding."""

    pollable: Any  # what zmq.Poller waits on and names: a ZeroMQ socket, or the descriptor of a plain one

    def send(self, number: int) -> None:
        """Send the request with the photograph of this number."""

    def receive(self) -> bool:
        """Take what has come; return whether the answer is whole. Raises RuntimeError where it is a refusal."""

    def close(self) -> None:
        """Hang up."""


class ZmqChannel:
    """A DEALER that speaks jetsel's protocol. The photographs are shared with ZeroMQ and never copied by us."""

    def __init__(
        self, context: zmq.Context[Any], endpoint: str, model: str | None, files: list[bytes], policy: str | None = None
    ) -> None:
        self.pollable = context.socket(zmq.DEALER)
        self.pollable.setsockopt(zmq.LINGER, 0)
        self.pollable.connect(endpoint)
        self._frames = [zmq.Frame(data, copy=False) for data in files]
        self._head = encode(Classify(PROTOCOL_VERSION, "1", model=model, policy=policy))

    def send(self, number: int) -> None:
        """See Channel."""
        self.pollable.send(self._head, zmq.SNDMORE)
        self.pollable.send(self._frames[number % len(self._frames)], copy=False)

    def receive(self) -> bool:
        """See Channel."""
        reply = self.pollable.recv_multipart()[-1]
        if b'"type":"answer"' not in reply:
            raise RuntimeError(f"the daemon refused: {json.loads(reply)}")
        return True

    def close(self) -> None:
        """See Channel."""
        self.pollable.close()


class HttpChannel:
    """HTTP/1.1 with keep-alive on a socket of its own."""

    def __init__(self, url: str, files: list[bytes]) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname or "", where.port or 80), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST {where.path}?{where.query} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: image/jpeg\r\n"
        self._heads = [f"{head}Content-Length: {len(data)}\r\n\r\n".encode() for data in files]
        self._files = files
        self._come = b""
        self.pollable = self._socket.fileno()

    def send(self, number: int) -> None:
        """See Channel."""
        index = number % len(self._files)
        parts = [self._heads[index], self._files[index]]
        sent = self._socket.sendmsg(parts)
        if sent < sum(map(len, parts)):
            self._socket.sendall(memoryview(b"".join(parts))[sent:])

    def receive(self) -> bool:
        """See Channel."""
        reply = self.take()
        if reply is not None and reply[0] != b"200":
            raise RuntimeError(f"the HTTP server refused: {reply!r}")
        return reply is not None

    def take(self) -> tuple[bytes, bytes] | None:
        """Take what has come; return status and body of the answer once it is whole."""
        piece = self._socket.recv(65_536)
        if not piece:
            raise RuntimeError("the HTTP server hung up")
        self._come += piece
        head, separator, body = self._come.partition(b"\r\n\r\n")
        if not separator or len(body) < _content_length(head):
            return None
        self._come = b""
        return head.split(b" ", 2)[1], body

    def close(self) -> None:
        """See Channel."""
        self._socket.close()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise RuntimeError(f"the HTTP server names no length: {head!r}")
