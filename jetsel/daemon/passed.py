"""The listening sockets that a service manager opened before it started us (socket activation, sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jetsel.errors import ConfigError

FIRST_FD = 3
PROCESS, COUNT, NAMES, PROCESS_ID = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"
OURS = ("jetsel", "jetsel.socket")  # FileDescriptorName=, which is the socket unit's name where it is not set


class Passed(NamedTuple):
    """One socket. path: of its file, None where it has none; flaw: why no client can be taken from it, or None."""

    fd: int
    name: str
    path: Path | None
    flaw: str | None

    def __str__(self) -> str:
        return f"{self.path or 'a socket without a file'} ({self.name}{f': {self.flaw}' if self.flaw else ''})"


def take(environment: MutableMapping[str, str] | None = None) -> list[Passed]:
    """Return the sockets that were passed to this process; they leave the environment, and no child inherits them.

    What is no socket is left alone. Raises ConfigError where the environment speaks of descriptors that are not there.
    """
    environment = os.environ if environment is None else environment
    process, count, names, _ = (environment.pop(name, "") for name in (PROCESS, COUNT, NAMES, PROCESS_ID))
    if process != str(os.getpid()):
        return []
    try:
        descriptors = range(FIRST_FD, FIRST_FD + int(count))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        sockets = [descriptor for descriptor in descriptors if stat.S_ISSOCK(os.fstat(descriptor).st_mode)]
    except (OSError, ValueError):
        raise ConfigError(f"${COUNT} is {count!r}, and so many sockets are not open: unset it") from None
    called = dict(zip(descriptors, names.split(":"), strict=False))
    return [_look(descriptor, called.get(descriptor) or "unknown") for descriptor in sockets]


def choose(passed: Sequence[Passed], wanted: Path | None) -> Passed | None:
    """Return the socket to serve, None where none was passed. wanted: the configured path, None where there is none.

    Raises ConfigError where sockets were passed and it is not clear that one of them is meant.
    """
    usable = [one for one in passed if one.path is not None and one.flaw is None]
    if wanted is not None:
        meant = [one for one in usable if one.path is not None and _is_same(one.path, wanted)]
    else:
        meant = usable if len(usable) == 1 else [one for one in usable if one.name in OURS]
    if len(meant) == 1 or not passed:
        return meant[0] if meant else None
    shown = ", ".join(map(str, passed))
    if wanted is not None:
        raise ConfigError(
            f"server.endpoint: it is ipc://{wanted}, and the service manager passes {shown}: set ListenStream={wanted} "
            "in the socket unit, or the endpoint to the path that is passed, or leave the endpoint out"
        )
    raise ConfigError(
        f"server.endpoint: the service manager passes {shown}: exactly one must be a listening stream socket with a "
        "file (ListenStream=/run/jetsel/jetsel.sock); of several, name one by server.endpoint or FileDescriptorName="
        f"{OURS[0]}"
    )


def _look(descriptor: int, name: str) -> Passed:
    with socket.socket(fileno=os.dup(descriptor)) as found:
        if found.family != socket.AF_UNIX:
            return Passed(descriptor, name, None, "no unix socket: the daemon listens on no other")
        at = found.getsockname()
        path = Path(at) if isinstance(at, str) and at else None  # an abstract name is bytes
        if found.type != socket.SOCK_STREAM:
            return Passed(descriptor, name, path, "no stream: use ListenStream=")
        if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return Passed(descriptor, name, path, "it does not listen: use Accept=no")
        return Passed(descriptor, name, path, None if path else "an abstract name")


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths name one file, by way of links such as /var/run too."""
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False
