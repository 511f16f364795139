"""What the tests of the port share: taking what comes, and a thread that stands at the socket."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import zmq

from jetsel.daemon.message import Message
from jetsel.daemon.port import Port

LIMIT_S = 60.0  # how long a test waits for what must come; it comes at once

LONG_MS = 1_000_000  # a wait that only a message or a wake ends within a test

Connect = Callable[..., "zmq.Socket[bytes]"]


def received(port: Port, count: int) -> list[Message]:
    """The next messages; fails where they do not come."""
    found: list[Message] = []
    sleep = port.sleep

    def take() -> None:
        while len(found) < count:
            taken = port.receive(count - len(found))
            found.extend(taken)
            if not taken:
                sleep()

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    taker.join(LIMIT_S)
    assert not taker.is_alive(), f"{len(found)} of {count} messages came"
    return found


@contextlib.contextmanager
def served(port: Port, answer: Callable[[Message], None]) -> Iterator[None]:
    """A thread at the socket that hands every message on, and that nothing but a message or a wake rouses."""
    stopping = threading.Event()
    sleep = port.sleep

    def serve() -> None:
        while not stopping.is_set():
            messages = port.receive(16)
            for message in messages:
                answer(message)
            if not messages:
                sleep()

    leader = threading.Thread(target=serve, daemon=True)
    leader.start()
    try:
        yield
    finally:
        stopping.set()
        port.wake()
        leader.join(LIMIT_S)
        assert not leader.is_alive()
