"""Socket activation: sockets that the service manager listens on, passed to the daemon (sd_listen_fds(3))."""

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


class Passed(NamedTuple):
    """A listening unix stream socket, and the path of its file."""

    fd: int
    path: Path


def take(environment: MutableMapping[str, str] | None = None) -> list[Passed]:
    """Return the sockets that were passed to this process; they leave the environment, and no child inherits them.

    Raises ConfigError where the environment speaks of descriptors that are not there, or of one that is no listening
    unix stream socket with a file.
    """
    environment = os.environ if environment is None else environment
    process, count, *_ = (environment.pop(name, "") for name in (PROCESS, COUNT, NAMES, PROCESS_ID))
    if process != str(os.getpid()):
        return []
    try:
        descriptors = range(FIRST_FD, FIRST_FD + int(count))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return [_look(descriptor) for descriptor in descriptors if stat.S_ISSOCK(os.fstat(descriptor).st_mode)]
    except (OSError, ValueError):
        raise ConfigError(f"${COUNT} is {count!r}, and so many sockets are not open: unset it") from None


def choose(passed: Sequence[Passed], wanted: Path | None) -> Passed | None:
    """Return the socket to serve, None where none was passed. wanted: the configured path, None where there is none.

    Raises ConfigError where sockets were passed and it is not clear that one of them is meant.
    """
    meant = [one for one in passed if wanted is None or _is_same(one.path, wanted)]
    if len(meant) == 1 or not passed:
        return meant[0] if meant else None
    shown = ", ".join(str(one.path) for one in passed)
    if wanted is None:
        raise ConfigError(f"server.endpoint: the service manager passes {shown}: name one of them by server.endpoint")
    raise ConfigError(
        f"server.endpoint: it is ipc://{wanted}, and the service manager passes {shown}: set ListenStream={wanted} "
        "in the socket unit, or the endpoint to the path that is passed, or leave the endpoint out"
    )


def _look(descriptor: int) -> Passed:
    with socket.socket(fileno=os.dup(descriptor)) as found:
        is_stream = found.family == socket.AF_UNIX and found.type == socket.SOCK_STREAM
        path = found.getsockname() if is_stream and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else None
        if not isinstance(path, str) or not path:  # an abstract name is bytes
            raise ConfigError(
                f"server.endpoint: descriptor {descriptor} of the service manager's is no listening unix stream socket "
                "with a file: use ListenStream=/run/jetsel/jetsel.sock and Accept=no in the socket unit"
            )
        return Passed(descriptor, Path(path))


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths name one file, by way of links such as /var/run too."""
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False
