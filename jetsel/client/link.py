"""One connection to the daemon, which never blocks, and the retries and time limits of a call."""

from __future__ import annotations

import math
import os
import random
import time
from typing import Literal

import zmq
from zmq.utils.monitor import recv_monitor_message

from jetsel.base.errors import ConfigError, JetselError, NoDaemonError, NoReplyError

HIGH_WATER_MARK = 64
"""Messages that ZeroMQ may queue in each direction; replies have about 1 KB."""
MAX_REPLY_BYTES = 4_000_000
"""Larger replies are invalid: the longest, 1,000 labels of 128 letters, has under 0.2 MB."""
UNCOPIED_FROM_BYTES = 65_536
"""From this size, lending the memory to ZeroMQ is cheaper than copying it."""
ENDED = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED

End = Literal["refused", "lost"]
"""How a connection ended: "refused" before it was made (EVENT_CLOSED), or "lost" later."""


class DaemonConnection:
    """One connection to the daemon. It does not reconnect, so that ZeroMQ never sends a request twice.

    descriptors: two files for an event loop to watch; they become readable when `ready` or `end` may have changed.
    """

    def __init__(self, endpoint: str) -> None:
        """Begin to connect to `endpoint`. Raises ConfigError if it is invalid, NoDaemonError if none can be opened."""
        self.endpoint = endpoint
        self._pid = os.getpid()  # a forked process must not use the socket; see `end`
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        try:
            self._socket = context.socket(zmq.DEALER)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
            self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_REPLY_BYTES)
            self._socket.setsockopt(zmq.RECONNECT_IVL, -1)  # never
            self._monitor = self._socket.get_monitor_socket(ENDED)
        except zmq.ZMQError as error:
            raise NoDaemonError(f"cannot open a connection to {endpoint}: {error.strerror}") from None
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(
                f"{endpoint} is not an endpoint ({error.strerror}): use ipc:///path/of/the.sock, at most 107 characters"
            ) from None
        self.descriptors = (_int_option(self._socket, zmq.FD), _int_option(self._monitor, zmq.FD))
        self._end: End | None = None
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def send(self, message: bytes, image: bytes | memoryview | None) -> bool:
        """Send a request without waiting; return False, without sending, if the daemon has not read earlier ones."""
        try:  # the empty first frame lets a proxy between this socket and the daemon route the reply (ZeroMQ RFC 28)
            self._socket.send(b"", zmq.NOBLOCK | zmq.SNDMORE)
            self._socket.send(message, zmq.NOBLOCK | (0 if image is None else zmq.SNDMORE))
            if image is not None:
                self._socket.send(image, zmq.NOBLOCK, copy=memoryview(image).nbytes < UNCOPIED_FROM_BYTES)
        except zmq.Again:
            return False
        return True

    def ready(self) -> tuple[bool, bool]:
        """Return whether there is a reply, and room to send. `descriptors` signal again only once both are False."""
        events = _int_option(self._socket, zmq.EVENTS)
        return bool(events & zmq.POLLIN), bool(events & zmq.POLLOUT)

    def receive(self) -> bytes | None:
        """Return the JSON of a received reply, None if there is none."""
        try:
            frames: list[bytes] = self._socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        return frames[-1]

    @property
    def end(self) -> End | None:
        """How the connection ended, None while it works or is being made."""
        if self._pid != os.getpid():  # ZeroMQ's threads exist in the parent only: a forked child would wait forever
            return "lost"
        if self._end is None and _int_option(self._monitor, zmq.EVENTS) & zmq.POLLIN:
            message = recv_monitor_message(self._monitor, zmq.NOBLOCK)  # EVENT_CLOSED: an attempt to connect failed
            self._end = "refused" if message["event"] == zmq.EVENT_CLOSED else "lost"
        return self._end

    def wait(self, timeout_ms: float, to_send: bool = False) -> None:
        """Sleep until a reply may be there, `send` may succeed (to_send), the connection ends, or time is over."""
        self._poller.register(self._socket, zmq.POLLIN | (zmq.POLLOUT if to_send else 0))
        self._poller.poll(math.ceil(max(timeout_ms, 0)))

    def close(self) -> None:
        """Close the connection and drop unsent requests."""
        if not self._socket.closed and self._pid == os.getpid():
            self._socket.disable_monitor()
            self._monitor.close()
            self._socket.close()


def _int_option(socket: zmq.Socket[bytes], option: int) -> int:
    return int(socket.getsockopt(option))


FIRST_PAUSE_S = 0.01  # a queue of requests of 10 ms has advanced by then
LONGEST_PAUSE_S = 0.5  # a restarted daemon is ready in seconds
MOST_LOSSES = 2
"""A restart loses a request once; a request that loses its connection every time is itself the cause."""


class CrowdedError(NoReplyError):
    """A daemon listens, but the kernel's queue of new connections is full (connect(2), EAGAIN)."""


class Attempts:
    """The time limits of one call, and its retries. timeout_ms: for the whole call. deadline_ms: for the answer."""

    def __init__(self, timeout_ms: float, deadline_ms: float | None = None) -> None:
        self._began_s = time.monotonic()
        self.timeout_ms = timeout_ms
        self._deadline_ms = deadline_ms
        self._pause_s = FIRST_PAUSE_S
        self._losses = 0  # connections that ended before the reply
        self._was_answered = False  # whether a daemon was there

    @property
    def left_ms(self) -> float:
        """Milliseconds until the call gives up; 0 or less if it is over."""
        return self.timeout_ms - self._elapsed_ms

    @property
    def deadline_left_ms(self) -> float | None:
        """Milliseconds left of the request's deadline, None if it has none."""
        return None if self._deadline_ms is None else self._deadline_ms - self._elapsed_ms

    def pause_s(self, error: JetselError) -> float | None:
        """Return the pause before the next attempt, doubled each time; None if the error is final.

        An error is final if it does not allow a retry, no daemon was there from the start, the connection was lost
        over MOST_LOSSES times, or the next attempt would begin after the timeout or the deadline.
        """
        if not error.retry or (isinstance(error, NoDaemonError) and not self._was_answered):
            return None
        self._was_answered = True
        self._losses += isinstance(error, NoReplyError) and not isinstance(error, CrowdedError)
        pause_s = self._pause_s * random.uniform(0.5, 1.0)  # spreads the retries of rejected clients
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        left_ms = min(self.left_ms, self.left_ms if self.deadline_left_ms is None else self.deadline_left_ms)
        return None if self._losses > MOST_LOSSES or pause_s * 1e3 >= left_ms else pause_s

    @property
    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._began_s) * 1e3
