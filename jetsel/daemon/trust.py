"""Who may change the daemon: root, its own user, and members of the configured admin group."""

from __future__ import annotations

import grp
import os
import pwd

from jetsel.daemon.identity import Identity
from jetsel.errors import ConfigError, NotAllowedError


class Trust:
    """Checks what the kernel says of a peer."""

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
        if sender.uid in (0, os.getuid()) or (self._group is not None and self._in_group(sender, self._group)):
            return
        group = f" or a member of {self._group}" if self._group else ""
        raise NotAllowedError(f"user {sender.uid} may not do this: be root, the daemon's own user{group}")

    @staticmethod
    def _in_group(sender: Identity, name: str) -> bool:
        """Whether the peer's own group or its user's groups hold the name; the file is read now, so changes count."""
        try:
            group = grp.getgrnam(name)
            return sender.gid == group.gr_gid or pwd.getpwuid(sender.uid).pw_name in group.gr_mem
        except KeyError:
            return False
