"""The tcp socket of a daemon without keys: on loopback alone, as the configuration's reader has seen to."""

from __future__ import annotations

import socket

from jetsel.errors import ConfigError

BACKLOG = 128
KEEPALIVE_PROBES = 2  # with as much time before each as before the first


def listen(endpoint: str) -> socket.socket:
    """Listen at tcp://HOST:PORT, where port 0 is any that is free; raises ConfigError where that cannot be."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise cannot_listen(endpoint, error.strerror or str(error)) from None
    return listening


def cannot_listen(endpoint: str, reason: str) -> ConfigError:
    """Return the error for who configured this."""
    return ConfigError(
        f'server.tcp: cannot listen at {endpoint}: {reason}; example, with a port that is free: tcp = "tcp://127.0.0.1:5555"'
    )


def endpoint_of(listening: socket.socket) -> str:
    """Return where it listens, with its port."""
    host, port = listening.getsockname()[:2]
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def limit_silence(peer: socket.socket, seconds: float) -> None:
    """Have the kernel end a connection whose other machine is gone without a word within this time (tcp(7)).

    It finds that by its probes where nothing is sent (SO_KEEPALIVE), and else by what the peer's own kernel does not
    take (TCP_USER_TIMEOUT).
    """
    pause_s = pause_of(seconds)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, pause_s)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause_s)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1e3))


def pause_of(seconds: float) -> int:
    """Return the time before each probe, in whole seconds, so that the last is over in that time."""
    return max(1, round(seconds / (1 + KEEPALIVE_PROBES)))
