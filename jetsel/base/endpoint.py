"""Finds the daemon's socket, by one rule for the daemon and its clients, and explains why nobody answers there."""

from __future__ import annotations

import grp
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from jetsel.base.errors import ConfigError, NoDaemonError

SYSTEM_SOCKET = "/run/jetsel/jetsel.sock"
VARIABLE = "JETSEL_ENDPOINT"
HOW_TO_START = "start one with: jetsel serve"
USERS_RUN = "/run/user"  # logind makes a runtime directory here for each user who is logged in
PROBE_S = 1.0  # a local listener accepts or refuses at once, unless its backlog is full


def user_socket(environment: Mapping[str, str] | None = None) -> str:
    """Return the path of the socket of a daemon that this user starts: below $XDG_RUNTIME_DIR, otherwise below /tmp.

    environment: None for os.environ.
    """
    environment = os.environ if environment is None else environment
    runtime = environment.get("XDG_RUNTIME_DIR")
    if not runtime and os.access(f"{USERS_RUN}/{os.getuid()}", os.W_OK):  # cron and sudo do not set the variable
        runtime = f"{USERS_RUN}/{os.getuid()}"
    return f"{runtime}/jetsel/jetsel.sock" if runtime else f"/tmp/jetsel-{os.getuid()}/jetsel.sock"


def find(endpoint: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Return the endpoint (ipc:///PATH) that a client connects to.

    It is the argument, otherwise $JETSEL_ENDPOINT, otherwise the user's own socket if it exists, otherwise the system
    service's. Raises NoDaemonError if neither socket exists, ConfigError if the argument or variable is no endpoint.
    """
    environment = os.environ if environment is None else environment
    checked = _checked_endpoint(endpoint, "the endpoint") if endpoint else from_variable(environment)
    if checked is not None:
        return checked
    socket_paths = (user_socket(environment), SYSTEM_SOCKET)
    for socket_path in socket_paths:
        if _socket_may_exist(Path(socket_path)):
            return f"ipc://{socket_path}"
    raise NoDaemonError(
        f"no daemon listens at {' or '.join(socket_paths)}: {HOW_TO_START}; or name its socket with --endpoint"
    )


def from_variable(environment: Mapping[str, str]) -> str | None:
    """Return the endpoint in $JETSEL_ENDPOINT, None if it is not set. Raises ConfigError if its value is invalid."""
    value = environment.get(VARIABLE)
    return _checked_endpoint(value, f"${VARIABLE}") if value else None


def why_absent(endpoint: str) -> NoDaemonError | None:
    """Connect once, and return why no daemon can be reached at the endpoint (ipc:///PATH); None if one listens."""
    path = endpoint.removeprefix("ipc://")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(path)
        except FileNotFoundError:
            return NoDaemonError(f"no daemon listens at {path}: {HOW_TO_START}")
        except ConnectionRefusedError:
            return NoDaemonError(f"the daemon that made {path} is gone: {HOW_TO_START}")
        except PermissionError:
            return NoDaemonError(_access_message(path))
        except (BlockingIOError, TimeoutError):
            return None  # it listens with a full backlog (connect(2): EAGAIN of a socket with a timeout)
        except OSError as error:
            return NoDaemonError(f"cannot connect to {path}: {error.strerror or error}: name the socket of a daemon")
    return None


def _checked_endpoint(value: str, source: str) -> str:
    """Return a path or endpoint as an endpoint; raises ConfigError if it is neither. source: of the value."""
    endpoint = f"ipc://{value}" if value.startswith("/") else value
    if not endpoint.startswith("ipc://"):
        raise ConfigError(
            f"{source} is {value!r}: use ipc:///path/of/the.sock; for a daemon on another machine, forward its socket "
            "with ssh (docs/remote-access.md)"
        )
    return endpoint


def _socket_may_exist(path: Path) -> bool:
    """Return whether a socket may exist at this path; False in a folder under /tmp that another user owns.

    That user could pose as the daemon.
    """
    try:
        is_foreign = path.parts[1] == "tmp" and path.parent.stat().st_uid != os.getuid()
        return not is_foreign and path.is_socket()
    except PermissionError:
        return True  # it may exist; connecting gives the reason
    except OSError:
        return False


def _access_message(path: str) -> str:
    """Return the error message for a user who may not use the socket: it names the group to join, if it is visible."""
    for folder in (Path(path), *Path(path).parents):
        try:
            group_id = folder.stat().st_gid
        except OSError:
            continue
        try:
            group = grp.getgrgid(group_id).gr_name
        except KeyError:
            group = str(group_id)
        return (
            f"this user may not use {path}: {folder} belongs to the group {group}; "
            f"join it with: sudo usermod -aG {group} $USER, then log in again"
        )
    return f"this user may not use {path}: ask the daemon's administrator for access"
