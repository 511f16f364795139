"""The daemon's own key, and whose keys may ask over tcp, as the files said at the last reload."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from jetsel.config import Server
from jetsel.daemon.identity import Identity
from jetsel.errors import ConfigError, ReloadFailedError
from jetsel.events import event
from jetsel.keys import AllowedKey, AllowedKeys, KeyFolder, z85

log = logging.getLogger("jetsel.access")

REVOKED = "a revoked key"


def keyring(server: Server) -> Keyring | None:
    """Return whose keys are let in over tcp, as configured; None where there is no tcp, or no keys are needed."""
    return None if server.tcp is None or server.keys is None else Keyring(server.keys)


class Keyring:
    """Reads the folder at the start, and again at each reload. Any thread may look a key up."""

    def __init__(self, folder: str) -> None:
        """Raises ConfigError where the server's key is missing, or not the daemon's alone.

        public_key, secret_key: of the server, 32 bytes each.
        """
        self._folder = KeyFolder(Path(folder), frozenset({0, os.geteuid()}))
        try:
            self.server = self._folder.server()
            self._allowed = self._folder.allowed()
        except ConfigError as error:
            raise ConfigError(f"server.keys: {error}") from None
        self.public_key, self.secret_key = (z85.decode(half) for half in (self.server.public, self.server.secret or ""))
        self._tell_left_out(self._allowed)

    def find(self, public: str) -> AllowedKey | None:
        """Return whose key this is (Z85), or None where it is not allowed now."""
        return self._allowed.by_public.get(public)

    def identify(self, public: str) -> Identity:
        """Return who shows this key, as keys are now."""
        key = self.find(public)
        if key is None:
            return Identity(REVOKED, refusal="this key was revoked: ask the daemon's owner for: jetsel keys allow")
        return Identity(f"key {key.name}", is_admin=key.is_admin)

    def reload(self) -> list[str]:
        """Read who is allowed again; return what changed, for people. Raises ReloadFailedError and changes nothing."""
        try:
            pair, after = self._folder.server(), self._folder.allowed()
        except ConfigError as error:
            raise ReloadFailedError(f"the running configuration stays: server.keys: {error}") from None
        if pair.public != self.server.public:
            log.warning("another server key takes effect at the next start", extra=event("server-key-changed"))
        before, self._allowed = self._allowed, after
        changed = _changes(before, after)
        for line in changed:
            log.info("%s", line, extra=event("keys-changed"))
        if after.left_out != before.left_out:
            self._tell_left_out(after)
        return changed

    def _tell_left_out(self, allowed: AllowedKeys) -> None:
        for line in allowed.left_out:
            log.error("a key was left out: %s", line, extra=event("key-left-out", reason=line))


def _changes(before: AllowedKeys, after: AllowedKeys) -> list[str]:
    gone = [k for public, k in before.by_public.items() if public not in after.by_public]
    new = [k for public, k in after.by_public.items() if public not in before.by_public]
    kept = [(before.by_public[public], k) for public, k in after.by_public.items() if public in before.by_public]
    return [
        *(f"key {key.name} revoked" for key in gone),
        *(f"key {key.name} allowed{_as_admin(key)}" for key in new),
        *(f"key {key.name} is {_role(key)}, was {old.name}, {_role(old)}" for old, key in kept if old != key),
    ]


def _as_admin(key: AllowedKey) -> str:
    return " as admin" if key.is_admin else ""


def _role(key: AllowedKey) -> str:
    return "admin" if key.is_admin else "no admin"
