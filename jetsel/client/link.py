"""One connection to a daemon: a DEALER socket that never waits, and a monitor that tells when the daemon is gone."""

from __future__ import annotations

import math
import os
from typing import Literal

import zmq
from zmq.utils.monitor import recv_monitor_message

from jetsel.client.credentials import Credentials
from jetsel.errors import ConfigError, NoDaemonError

HIGH_WATER_MARK = 64
"""Messages that ZeroMQ may hold for us in each direction; replies are about 1 KB."""
MAX_REPLY_BYTES = 4_000_000
"""The longest reply, 1,000 labels of 128 letters, has under 0.2 MB; anything larger is no reply of ours."""
UNCOPIED_FROM_BYTES = 65_536
"""From here on lending the memory to ZeroMQ is cheaper than copying it."""
ENDED = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED  # the attempt to connect failed
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)

End = Literal["refused", "lost", "mismatch", "denied", "ungreeted"]
"""How a connection ended: it never came about; it was hung up; one side has keys and the other none; the daemon does
not know our key; or it was hung up over tcp before both sides had greeted each other."""


class Link:
    """A connection, used until it is lost and then replaced: it does not reconnect, so no request is sent twice unseen.

    Raises ConfigError where the endpoint is none, and NoDaemonError where this process has no descriptors left.
    """

    def __init__(self, endpoint: str, credentials: Credentials | None = None) -> None:
        """credentials: for a daemon over tcp that needs a key."""
        self.endpoint = endpoint
        self.has_key = credentials is not None
        self._pid = os.getpid()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        try:
            self._socket = context.socket(zmq.DEALER)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
            self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_REPLY_BYTES)
            self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
            if credentials is not None:
                self._socket.setsockopt(zmq.CURVE_PUBLICKEY, credentials.public)
                self._socket.setsockopt(zmq.CURVE_SECRETKEY, credentials.secret)
                self._socket.setsockopt(zmq.CURVE_SERVERKEY, credentials.server)
            if endpoint.startswith("tcp://["):
                self._socket.setsockopt(zmq.IPV6, 1)
            self._monitor = self._socket.get_monitor_socket(ENDED)
        except zmq.ZMQError as error:
            raise NoDaemonError(f"cannot open a connection to {endpoint}: {error.strerror}") from None
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(
                f"{endpoint} is no endpoint ({error.strerror}): use ipc:///path/of/the.sock, at most 107 letters, "
                "or tcp://127.0.0.1:5555"
            ) from None
        self.descriptors = (_number(self._socket, zmq.FD), _number(self._monitor, zmq.FD))
        self._end: End | None = None
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def send(self, message: bytes, image: bytes | memoryview | None) -> bool:
        """Send a request without waiting; return False where the daemon has not read what was sent before."""
        try:
            if image is None:
                self._socket.send(message, zmq.NOBLOCK)
            else:
                self._socket.send(message, zmq.NOBLOCK | zmq.SNDMORE)
                self._socket.send(image, zmq.NOBLOCK, copy=memoryview(image).nbytes < UNCOPIED_FROM_BYTES)
        except zmq.Again:
            return False
        return True

    def ready(self) -> tuple[bool, bool]:
        """Whether a reply is there, and whether there is room to send. `descriptors` are mute until neither is so."""
        events = _number(self._socket, zmq.EVENTS)
        return bool(events & zmq.POLLIN), bool(events & zmq.POLLOUT)

    def receive(self) -> bytes | None:
        """Return frame one of a reply that has come, or None."""
        try:
            frames: list[bytes] = self._socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        return frames[1] if len(frames) > 1 and not frames[0] else frames[0]

    @property
    def end(self) -> End | None:
        """How the connection ended; None while it stands or is being made.

        To a process that was forked off it is lost: ZeroMQ's threads stay with the one that made it, and any use of
        the socket here would wait for them for ever.
        """
        if self._pid != os.getpid():
            return "lost"
        if self._end is None and _number(self._monitor, zmq.EVENTS) & zmq.POLLIN:
            told = recv_monitor_message(self._monitor, zmq.NOBLOCK)
            self._end = _kind_of_end(told["event"], told["value"], is_tcp=self.endpoint.startswith("tcp://"))
        return self._end

    def wait(self, timeout_ms: float, to_send: bool = False) -> None:
        """Sleep until a reply may have come (`to_send`: or a request may be sent), the link ended, or time is over."""
        self._poller.register(self._socket, zmq.POLLIN | (zmq.POLLOUT if to_send else 0))
        self._poller.poll(math.ceil(max(timeout_ms, 0)))

    def close(self) -> None:
        """Hang up. What was not sent yet is dropped."""
        if not self._socket.closed and self._pid == os.getpid():
            self._socket.disable_monitor()
            self._monitor.close()
            self._socket.close()


def _kind_of_end(event: int, value: int, *, is_tcp: bool) -> End:
    """From what the monitor told first (zmq_socket_monitor(3)); value: of a failed handshake, how it failed."""
    if event == zmq.EVENT_CLOSED:
        return "refused"
    if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
        return "denied"
    if event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
        return "mismatch"
    return "lost" if event == zmq.EVENT_DISCONNECTED or not is_tcp else "ungreeted"


def _number(socket: zmq.Socket[bytes], option: int) -> int:
    return int(socket.getsockopt(option))
