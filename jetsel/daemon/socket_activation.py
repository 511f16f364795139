"""A socket that the service manager listens on and passes to the daemon (sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from pathlib import Path

from jetsel.errors import ConfigError

FIRST_FD = 3  # SD_LISTEN_FDS_START
PROCESS, COUNT, NAMES, PROCESS_ID = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"


def passed_socket(environment: MutableMapping[str, str], wanted: Path | None) -> Path | None:
    """Return where FIRST_FD listens if it was passed to this process, else None; no child inherits it or hears of it.

    wanted: the configured path, None where there is none. Raises ConfigError where more was passed than one listening
    unix stream socket with a file, or one at another path than is wanted.
    """
    process, count, *_ = (environment.pop(name, "") for name in (PROCESS, COUNT, NAMES, PROCESS_ID))
    if process != str(os.getpid()):
        return None
    path = _path_of(FIRST_FD) if count == "1" else None
    if path is None:
        raise ConfigError(
            f"server.endpoint: the service manager passes {count} descriptors, and not one listening unix stream "
            "socket with a file: use one ListenStream=/run/jetsel/jetsel.sock and Accept=no in the socket unit"
        )
    if wanted is not None and not _is_same(path, wanted):
        raise ConfigError(
            f"server.endpoint: it is ipc://{wanted}, and the service manager passes {path}: set ListenStream={wanted} "
            "in the socket unit, or the endpoint to the path that is passed, or leave the endpoint out"
        )
    return path


def _path_of(descriptor: int) -> Path | None:
    """Return the path at which this descriptor listens, None where it does not."""
    try:
        os.set_inheritable(descriptor, False)
        with socket.socket(fileno=os.dup(descriptor)) as found:
            listens = found.type == socket.SOCK_STREAM and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            path = found.getsockname() if found.family == socket.AF_UNIX and listens else None
    except OSError:
        return None
    return Path(path) if path and isinstance(path, str) else None  # an abstract name is bytes


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths name one file, by way of links such as /var/run too."""
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False
