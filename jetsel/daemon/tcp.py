"""The tcp socket: where it listens, who is at the other end, and what the kernel is asked to watch."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct

from jetsel.errors import ConfigError

BACKLOG = 128
_SIOCGIFADDR = 0x8915  # netdevice(7), sockios.h
_IFREQ, _LONGEST_NAME = "40s", 15
_ADDRESS = slice(20, 24)  # of struct ifreq: a name of 16 bytes, ended by a zero, then a sockaddr_in
KEEPALIVE_PROBES = 2  # with as much time before each as before the first


def listen(endpoint: str) -> socket.socket:
    """Listen at tcp://HOST:PORT, where port 0 is any that is free; raises ConfigError where that cannot be.

    HOST: an address, a name, * for all addresses (of IPv4; [::] has all of both), or an interface.
    """
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            _address(host), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:  # the latter where a name has a part that none may have
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"server.tcp: cannot listen at {endpoint}: {reason}; example, with a port that is free: "
            'tcp = "tcp://127.0.0.1:5555"'
        ) from None
    return listening


def _address(host: str) -> str:
    """Return what getaddrinfo(3) takes: of an interface, the address that it has."""
    if host == "*":
        return "0.0.0.0"  # whoever configures it wants that, and keys are needed then
    # Without AF_NETLINK, which a list of all interfaces takes and the unit does not allow.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        found = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack(_IFREQ, host.encode()[:_LONGEST_NAME]))
        return socket.inet_ntoa(found[_ADDRESS])
    return host.strip("[]")


def peer_address(name: tuple[object, ...]) -> str:
    """Return an address without its port, as accept(2) gives it; an IPv4 one as such also where it came over IPv6."""
    return str(name[0]).removeprefix("::ffff:")


def endpoint_of(listening: socket.socket) -> str:
    """Return where it listens, with its port."""
    host, port = listening.getsockname()[:2]
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def limit_silence(peer: socket.socket, seconds: float) -> None:
    """Have the kernel end a connection whose other machine is gone without a word within this time (tcp(7)).

    It finds that by its probes where nothing is sent (SO_KEEPALIVE), and else by what the peer's own kernel does not
    take (TCP_USER_TIMEOUT).
    """
    pause_s = max(1, round(seconds / (1 + KEEPALIVE_PROBES)))  # before each probe: the last is over in that time
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, pause_s)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause_s)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1e3))
