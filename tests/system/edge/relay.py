"""A TCP relay before a real server, which takes its time: two of them are two ways of different length to it."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading

CHUNK_BYTES = 65_536


class Relay(socketserver.ThreadingTCPServer):
    """Passes bytes on to a port of this machine, those to it after `delay_s`, which may change."""

    daemon_threads = True

    def __init__(self, port: int, delay_s: float) -> None:
        self.delay_s, self._port = delay_s, port
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def finish_request(self, request: socket.socket, _: object) -> None:  # type: ignore[override]
        """Carry one connection, until either side ends it."""
        with socket.create_connection(("127.0.0.1", self._port)) as there:
            back = threading.Thread(target=_carry, args=(there, request), daemon=True)
            back.start()
            _carry(request, there, self)
            back.join()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def _carry(source: socket.socket, to: socket.socket, relay: Relay | None = None) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(CHUNK_BYTES):
            if relay is not None:
                threading.Event().wait(relay.delay_s)
            to.sendall(piece)
        to.shutdown(socket.SHUT_WR)
