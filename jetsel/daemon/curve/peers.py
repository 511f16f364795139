"""Who is at the other end of an accepted connection, and what came over it, as the kernel tells by its descriptor.

The descriptors are libzmq's, which may close one at any moment and get its number again for the next connection. So
each question is put to a copy (dup(2)), and whoever ends a connection names the inode that it is to have: a number that
no other socket gets.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

_BYTES = struct.Struct("=2Q")  # of struct tcp_info: tcpi_bytes_acked, tcpi_bytes_received (linux/tcp.h, Linux 4.1)
_BYTES_AT = 120
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_PREFIX = 64  # bits of an IPv6 address that are its network's: whoever has one has all of the rest (RFC 4291, 2.5.4)


class Peer(NamedTuple):
    """owner: the address without its port; see `network`."""

    inode: int
    owner: str


class Passed(NamedTuple):
    """Bytes of one tcp connection so far. sent: those that the peer's kernel has acknowledged."""

    sent: int
    received: int


@contextlib.contextmanager
def copied(descriptor: int) -> Iterator[socket.socket]:
    """Hold the same socket under another descriptor; raises OSError where there is none."""
    copy = os.dup(descriptor)
    try:
        found = socket.socket(fileno=copy)
    except OSError:  # no socket: Python leaves the descriptor open
        os.close(copy)
        raise
    with found:
        yield found


def who(descriptor: int) -> Peer | None:
    """Return who is there; None where it is no tcp connection, or none any more."""
    try:
        with copied(descriptor) as copy:
            if copy.family not in _INTERNET:  # of somebody else's in the daemon, who has this number by now
                return None
            return Peer(os.fstat(copy.fileno()).st_ino, network(str(copy.getpeername()[0])))
    except OSError:
        return None


def network(address: str) -> str:
    """Return whom an address stands for: itself, or its network where it is of IPv6, and not of IPv4 in disguise."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _PREFIX), strict=False))


def passed(descriptor: int) -> Passed | None:
    """Return how much a tcp connection has carried; None where it has ended (tcp(7), TCP_INFO)."""
    try:
        with copied(descriptor) as copy:
            told = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_AT + _BYTES.size)
            return Passed(*_BYTES.unpack_from(told, _BYTES_AT))
    except (OSError, struct.error):  # an older kernel tells less
        return None


def inode_of(descriptor: int) -> int | None:
    """Return a socket's inode; None where there is no socket."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_ino if stat.S_ISSOCK(found.st_mode) else None


def hang_up(descriptor: int, inode: int) -> bool:
    """End the connection with this inode (shutdown(2)), which libzmq then closes; False where it has ended before."""
    try:
        with copied(descriptor) as copy:
            if os.fstat(copy.fileno()).st_ino != inode:
                return False
            copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    return True
