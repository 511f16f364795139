"""Who sent a message, as far as its transport vouches for it."""

from __future__ import annotations

from typing import NamedTuple

LOOPBACK = "loopback"  # everybody on tcp without keys: nobody is told from anybody else there


class Identity(NamedTuple):
    """One client. `name` is what limits and the log count by: "uid 1000", or "loopback".

    credentials: (uid, gid, pid) of an ipc peer as the kernel says, None over tcp.
    """

    name: str
    credentials: tuple[int, int, int] | None = None


def identify(peer_address: str | None) -> Identity:
    """Return who a message is from; peer_address: what libzmq knows of the connection (ZMTP property Peer-Address)."""
    credentials = None if peer_address is None else parse_peer_address(peer_address)
    return Identity(LOOPBACK) if credentials is None else Identity(f"uid {credentials[0]}", credentials)


def parse_peer_address(address: str) -> tuple[int, int, int] | None:
    """':uid:gid:pid' as libzmq writes it for ipc -> (uid, gid, pid); anything else, a tcp address included -> None."""
    fields = address.split(":")
    if len(fields) != 4 or fields[0] not in ("", "localhost") or not all(f.isdigit() for f in fields[1:]):
        return None
    uid, gid, pid = (int(field) for field in fields[1:])
    return uid, gid, pid
