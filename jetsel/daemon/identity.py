"""Who sent a message, as far as its transport vouches for it."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_NUMBER = re.compile("[0-9]{1,10}")  # of 32 bits; str.isdigit takes other scripts' digits, and ones that int refuses

LOOPBACK = "loopback"  # everybody on tcp without keys: nobody is told from anybody else there
KEPT = 4096  # peers' addresses whose meaning is kept: more than connect at a time


class Identity(NamedTuple):
    """One client. `name` is what limits and the log count by: "uid 1000", "key NAME", or "loopback".

    credentials: (uid, gid, pid) of an ipc peer as the kernel says, None over tcp. is_admin: whether its key may change
    the daemon. refusal: why it may not even ask any more, None where it may.
    """

    name: str
    credentials: tuple[int, int, int] | None = None
    is_admin: bool = False
    refusal: str | None = None


@functools.lru_cache(KEPT)  # asked for each message
def identify(peer_address: str | None) -> Identity:
    """Return who a message is from; peer_address: what libzmq knows of the connection (ZMTP property Peer-Address).

    A peer may call any property its own, but libzmq sets this one first.
    """
    credentials = None if peer_address is None else parse_peer_address(peer_address)
    return Identity(LOOPBACK) if credentials is None else of_process(*credentials)


def of_process(uid: int, gid: int, pid: int) -> Identity:
    """Return who a peer on ipc is."""
    return Identity(f"uid {uid}", (uid, gid, pid))


def parse_peer_address(address: str) -> tuple[int, int, int] | None:
    """':uid:gid:pid' as libzmq writes it for ipc -> (uid, gid, pid); anything else, a tcp address included -> None."""
    fields = address.split(":")
    if len(fields) != 4 or fields[0] not in ("", "localhost") or not all(map(_NUMBER.fullmatch, fields[1:])):
        return None
    uid, gid, pid = (int(field) for field in fields[1:])
    return uid, gid, pid
