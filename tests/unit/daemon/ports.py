"""What the tests of the socket share: calling at it, taking what comes, and a thread that stands at it."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import zmq

from jetsel.daemon.port import Message, Port

LIMIT_S = 60.0  # how long a test waits for what must come; it comes at once

LONG_S = 1000.0  # a wait that only a message or a wake ends within a test

Connect = Callable[..., "zmq.Socket[bytes]"]


def somebody_answers(path: Path) -> bool:
    """Whether anybody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0


def received(port: Port, count: int) -> list[Message]:
    """The next messages; fails where they do not come."""
    found: list[Message] = []

    def take() -> None:
        while len(found) < count:
            found.extend(port.receive(LONG_S) or [])

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    taker.join(LIMIT_S)
    assert not taker.is_alive(), f"{len(found)} of {count} messages came"
    return found


@contextlib.contextmanager
def served(port: Port, answer: Callable[[Message], None], threads: int = 1) -> Iterator[None]:
    """Threads at the socket that hand every message on, and that nothing but a message or a wake rouses."""
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            for message in port.receive(LONG_S) or []:
                answer(message)
        port.wake()  # the next

    serving = [threading.Thread(target=serve, daemon=True) for _ in range(threads)]
    for thread in serving:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        port.wake()
        for thread in serving:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
