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
    """Return the path of the socket in the user's runtime directory: $XDG_RUNTIME_DIR, or a private one under /tmp."""
    environment = os.environ if environment is None else environment
    runtime = environment.get("XDG_RUNTIME_DIR")
    if not runtime and os.access(f"{USERS_RUN}/{os.getuid()}", os.W_OK):  # cron and sudo do not set the variable
        runtime = f"{USERS_RUN}/{os.getuid()}"
    return f"{runtime}/jetsel/jetsel.sock" if runtime else f"/tmp/jetsel-{os.getuid()}/jetsel.sock"


def find(endpoint: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Return the endpoint to connect to: the argument, $JETSEL_ENDPOINT, the user's socket, or the system's.

    The first of the two sockets that exists is used. Raises NoDaemonError if neither exists, ConfigError if the
    argument or the variable is no endpoint.
    """
    environment = os.environ if environment is None else environment
    given = _checked_endpoint(endpoint, "the endpoint") if endpoint else from_variable(environment)
    if given is not None:
        return given
    places = (user_socket(environment), SYSTEM_SOCKET)
    for place in places:
        if _socket_may_exist(Path(place)):
            return f"ipc://{place}"
    raise NoDaemonError(
        f"no daemon listens at {' or '.join(places)}: {HOW_TO_START}; or name its socket with --endpoint"
    )


def from_variable(environment: Mapping[str, str]) -> str | None:
    """Return the endpoint in $JETSEL_ENDPOINT, None if it is not set. Raises ConfigError if it is no endpoint."""
    given = environment.get(VARIABLE)
    return _checked_endpoint(given, f"${VARIABLE}") if given else None


def why_absent(endpoint: str) -> NoDaemonError | None:
    """Return why no daemon can be reached there, None if one listens. Connects once and closes the connection."""
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


def _checked_endpoint(given: str, source: str) -> str:
    endpoint = f"ipc://{given}" if given.startswith("/") else given
    if not endpoint.startswith("ipc://"):
        raise ConfigError(
            f"{source} is {given!r}: use ipc:///path/of/the.sock; for a daemon on another machine, forward its socket "
            "with ssh (docs/remote-access.md)"
        )
    return endpoint


def _socket_may_exist(path: Path) -> bool:
    """Return whether a socket may exist at this path; not in a folder under /tmp that another user owns."""
    try:
        is_foreign = path.parts[1] == "tmp" and path.parent.stat().st_uid != os.getuid()
        return not is_foreign and path.is_socket()
    except PermissionError:
        return True  # it may exist; connecting gives the reason
    except OSError:
        return False


def _access_message(path: str) -> str:
    """Return the message for a user without access, with the socket's group as far as this user may see it."""
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
