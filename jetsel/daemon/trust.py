"""Who may change the daemon: root, its own user and the configured admin group over ipc, an admin's key over tcp."""

from __future__ import annotations

import grp
import os
import pwd

from jetsel.daemon.identity import LOOPBACK, Identity
from jetsel.errors import ConfigError, NotAllowedError


class Trust:
    """Checks what the kernel says of an ipc peer, and whether the key of a tcp peer is an admin's."""

    def __init__(self, admin_group: str | None) -> None:
        self._group = admin_group
        if admin_group is not None:
            try:
                grp.getgrnam(admin_group)
            except KeyError:
                raise ConfigError(
                    f'server.admin_group: there is no group {admin_group!r} here; example: admin_group = "adm"'
                ) from None

    def check(self, sender: Identity) -> None:
        """Raise NotAllowedError unless the sender may change the daemon."""
        if sender.is_admin:
            return
        if sender.name == LOOPBACK:
            raise NotAllowedError(
                "nobody may change the daemon over tcp without keys: use its ipc socket, or set [server] keys"
            )
        if sender.credentials is None:
            raise NotAllowedError(
                f"{sender.name} may not change the daemon: use its ipc socket, or have its owner run "
                "jetsel keys allow FILE --admin --replace"
            )
        uid, gid, _ = sender.credentials
        if uid in (0, os.getuid()) or (self._group is not None and self._in_group(uid, gid, self._group)):
            return
        group = f" or a member of {self._group}" if self._group else ""
        raise NotAllowedError(f"user {uid} may not do this: be root, the daemon's own user{group}")

    @staticmethod
    def _in_group(uid: int, gid: int, name: str) -> bool:
        """Whether the peer's own group or its user's groups hold the name; the file is read now, so changes count."""
        try:
            group = grp.getgrnam(name)
            return gid == group.gr_gid or pwd.getpwuid(uid).pw_name in group.gr_mem
        except KeyError:
            return False
