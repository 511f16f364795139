"""Sender of a message: the user that the kernel reports for its connection (unix(7), SO_PEERCRED)."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from typing import NamedTuple

from jetsel.base.errors import ConfigError, NotAllowedError
from jetsel.base.state import agent_folder

TRUSTED = frozenset({"uid 0", f"uid {os.getuid()}"})  # root and the daemon's own user may end the daemon anyway
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class UserIdentity(NamedTuple):
    """One user: the numbers of the user and its group."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """Name by which limits and the log count."""
        return f"uid {self.uid}"


def sender_of(peer: socket.socket) -> UserIdentity:
    """Return the user at the other end of a unix socket. Raises OSError."""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return UserIdentity(*_CREDENTIALS.unpack(raw)[1:])


def group_number(key: str, name: str) -> int:
    """Return the number of the group that `[server] key` names; raises ConfigError if there is none."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(f'server.{key}: there is no group {name!r} here; example: {key} = "video"') from None


def check_admin(sender: UserIdentity, admin_group: str | None) -> None:
    """Raise NotAllowedError unless the sender is root, the daemon's user, the fleet agent's, or in admin_group."""
    if sender.uid in (0, os.getuid()) or (admin_group is not None and _is_member(sender, admin_group)):
        return
    if sender.uid == _agent_user():
        return
    group = f" or a member of {admin_group}" if admin_group else ""
    raise NotAllowedError(f"user {sender.uid} may not do this: be root, the daemon's own user{group}")


def _agent_user() -> int | None:
    """Return the user of the fleet agent, which reloads after it installs: its folder's owner; None without one."""
    try:
        return agent_folder().stat().st_uid
    except OSError:
        return None


def _is_member(sender: UserIdentity, name: str) -> bool:
    """Whether the group is the sender's own or one of its user's; read from the system, so that changes take effect."""
    try:
        group = grp.getgrnam(name)
        return sender.gid == group.gr_gid or pwd.getpwuid(sender.uid).pw_name in group.gr_mem
    except KeyError:
        return False
