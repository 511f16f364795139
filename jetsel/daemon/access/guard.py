"""Who stands at tcp: keys on the socket, and the thread that answers handshakes and tells of the refused."""

from __future__ import annotations

import threading
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from jetsel.bell import Bell
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.access.refusals import Refusals
from jetsel.daemon.access.strangers import EVENTS, Strangers
from jetsel.daemon.access.zap import DOMAIN, ENDPOINT, Handshakes
from jetsel.daemon.identity import Identity

LOOK_EVERY_MS = 60_000  # at the time, where nothing happens
MOST_EVENTS = 256  # taken at once, so that a flood of connections does not hold up those who ask


class Guard:
    """What stands before the tcp address of a ROUTER socket; to be made before that is bound.

    A handshake waits for this thread, and for nothing else: it computes nothing and never waits for a peer.
    """

    def __init__(
        self, context: zmq.Context[Any], socket: zmq.Socket[bytes], keyring: Keyring, peer_timeout_s: float
    ) -> None:
        self.keyring = keyring
        self._handshakes = Handshakes(keyring)
        self._strangers = Strangers(peer_timeout_s)
        self._refusals = Refusals()
        self._socket = socket
        self._zap = context.socket(zmq.REP)
        self._zap.setsockopt(zmq.LINGER, 0)
        self._zap.bind(ENDPOINT)
        self._events = socket.get_monitor_socket(EVENTS)
        self._bell = Bell()
        self._stopping = False
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, (keyring.server.secret or "").encode())
        socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        self._thread = threading.Thread(target=self._serve, name="guard", daemon=True)
        self._thread.start()

    def identify(self, user_id: str) -> Identity:
        """Return whom a message is from by its User-Id, as keys are now."""
        return self._handshakes.identify(user_id)

    def close(self) -> None:
        """Let nobody in any more; to be called before the socket is closed."""
        self._stopping = True
        self._bell.ring()
        self._thread.join()
        self._socket.disable_monitor()
        self._events.close()
        self._zap.close()
        self._bell.close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for source in (self._zap, self._events, self._bell.fd):
            poller.register(source, zmq.POLLIN)
        while not self._stopping:
            ready = dict(poller.poll(LOOK_EVERY_MS))
            request = self._zap.recv_multipart() if self._zap in ready else None
            # A connection is accepted before it asks: its event is there once its request is.
            for peer in self._strangers.take(self._told()):
                self._refusals.note(*peer)
            if request is not None:
                self._answer(request)
            self._refusals.look()

    def _told(self) -> list[dict[str, Any]]:
        """What the monitor has told by now."""
        found: list[dict[str, Any]] = []
        while len(found) < MOST_EVENTS and self._events.poll(0):
            found.append(dict(recv_monitor_message(self._events)))
        return found

    def _answer(self, request: list[bytes]) -> None:
        verdict = self._handshakes.judge(request)
        self._strangers.asked(verdict.address)
        self._zap.send_multipart(verdict.reply)
        if verdict.refusal is not None:
            self._refusals.note(verdict.address, verdict.refusal)
