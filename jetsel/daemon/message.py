"""What comes off a socket, and where its reply goes."""

from __future__ import annotations

from typing import NamedTuple

from jetsel.daemon.identity import Identity
from jetsel.errors import NotAllowedError


class Route(NamedTuple):
    """Where a reply goes, and whether its request began with REQ's empty delimiter.

    peer: the number of a connection.
    """

    peer: int
    delimited: bool


class Message(NamedTuple):
    """One message as it came: where its reply goes, its frames, and who sent it, as keys are now."""

    route: Route
    frames: list[memoryview]
    sender: Identity

    def check(self) -> None:
        """Raise NotAllowedError where its sender's key was revoked since it connected."""
        if self.sender.refusal is not None:
            raise NotAllowedError(self.sender.refusal)


def undelimited(frames: list[memoryview]) -> tuple[list[memoryview], bool]:
    """Return a message's frames without REQ's delimiter, and whether there was one."""
    is_delimited = len(frames) > 1 and len(frames[0]) == 0
    return (frames[1:] if is_delimited else frames), is_delimited
