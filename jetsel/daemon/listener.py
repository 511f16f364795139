"""The file of the ipc socket: its owner, mode and group. No file of a running daemon or another program is removed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import MutableMapping
from pathlib import Path

from jetsel.base.config import ServerSettings
from jetsel.base.endpoint import VARIABLE, from_variable, user_socket
from jetsel.base.errors import ConfigError
from jetsel.daemon.identity import group_number

MODE = 0o660
BACKLOG = 128
LONGEST_PATH = 107  # sun_path of sockaddr_un holds 108 bytes, the last of them zero
RUNTIME = "RUNTIME_DIRECTORY"  # systemd.exec(5): folders of the service, separated by colons


def listen(server: ServerSettings, environment: MutableMapping[str, str] | None = None) -> Listener:
    """Listen at the first of: a socket that a service manager passes, server.endpoint, $JETSEL_ENDPOINT.

    If none is given, listen in the service's folder, or in the user's. environment: None for the process's own. Raises
    ConfigError, also if a passed socket is not at server.endpoint.
    """
    environment = os.environ if environment is None else environment
    path = None if server.endpoint is None else Path(server.endpoint.removeprefix("ipc://"))
    passed = passed_socket(environment, path)
    if passed is not None:
        return Listener(passed, None, FIRST_FD)
    if path is None and (variable := from_variable(environment)) is not None:
        return Listener(Path(variable.removeprefix("ipc://")), server.group, setting=f"${VARIABLE}")
    if path is None and (folder := environment.get(RUNTIME, "").split(":")[0]):
        path = Path(folder, "jetsel.sock")
    if path is None:
        path = Path(user_socket(environment))
        make_private_folder(path.parent)
    return Listener(path, server.group)


class Listener:
    """A listening unix socket at a path, reserved by a lock on `<path>.lock` until `close`."""

    def __init__(
        self, path: Path, group: str | None, passed_fd: int | None = None, setting: str = "server.endpoint"
    ) -> None:
        """Listen at the path; raises ConfigError if another daemon, another program's file or a permission prevents it.

        group: which group may connect, None for the user's own. passed_fd: the socket on which a service manager
        listens there; the manager owns the file. setting: where the path comes from, for error messages.
        """
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise ConfigError(f"{setting}: {path} is longer than the {LONGEST_PATH} bytes a socket's path may have")
        self.path = path
        self.is_passed = passed_fd is not None
        self._lock_fd: int | None = None
        self._made_file = False
        if passed_fd is not None:
            os.set_blocking(passed_fd, False)
            self.fd = passed_fd
            return
        try:
            self._lock_fd = _lock(path, setting)
            _remove_stale(path, setting)
            self.fd = _listen(path, group)
            self._made_file = True
        except OSError as error:
            self.close()
            raise ConfigError(
                f"{setting}: cannot listen at {path}: {error.strerror}; check that you own the folder"
            ) from None
        except ConfigError:
            self.close()
            raise

    def close(self) -> None:
        """Remove the socket's file, then release the lock. The port closes the descriptor."""
        if self._lock_fd is None:
            return
        with contextlib.suppress(OSError):
            if self._made_file and stat.S_ISSOCK(self.path.lstat().st_mode):
                self.path.unlink()
        with contextlib.suppress(OSError):
            _lock_path(self.path).unlink()
        os.close(self._lock_fd)
        self._lock_fd = None


def make_private_folder(folder: Path) -> None:
    """Make the folder of the user's own socket, with mode 0700; raises ConfigError if another user owns it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise ConfigError(f"cannot make {folder}: {error.strerror}; set server.endpoint or $XDG_RUNTIME_DIR") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ConfigError(f"{folder} belongs to somebody else: set server.endpoint or $XDG_RUNTIME_DIR")


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _lock(path: Path, setting: str) -> int:
    """Lock `<path>.lock` and return its descriptor. The lock ends with the process, so none is ever stale."""
    while True:
        descriptor = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f" (process {holder})" if holder else ""
            raise ConfigError(
                f"{setting}: another jetsel{who} serves {path}: stop it, or give this one another endpoint"
            ) from None
        # The previous holder may have removed the file between our open and our lock.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == _lock_path(path).stat().st_ino:
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
        os.close(descriptor)


def _remove_stale(path: Path, setting: str) -> None:
    """Remove the socket of a daemon that died. Raises ConfigError if something listens there, or it is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"{setting}: {path} exists and is not a socket: move it away, or choose another endpoint")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        # Without a lock, a service manager may listen, or a daemon whose lock file was deleted.
        if probe.connect_ex(str(path)) in (0, errno.EAGAIN):  # EAGAIN: its backlog is full (connect(2))
            raise ConfigError(
                f"{setting}: something else listens at {path}: stop it (a socket unit with: systemctl stop "
                "jetsel.socket), or give this daemon another endpoint"
            )
    path.unlink()


def _listen(path: Path, group: str | None) -> int:
    """Return the descriptor of a new listening socket. Nobody can connect before its mode and group are set."""
    gid = -1 if group is None else group_number("group", group)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as listening:
        old_umask = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(old_umask)
        try:
            os.chown(path, -1, gid)
        except PermissionError:
            path.unlink()
            raise ConfigError(f"server.group: this user may not give {path} to {group}: join the group first") from None
        path.chmod(MODE)
        listening.listen(BACKLOG)
        return listening.detach()


FIRST_FD = 3  # SD_LISTEN_FDS_START
PROCESS, COUNT, NAMES, PROCESS_ID = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"


def passed_socket(environment: MutableMapping[str, str], expected_path: Path | None) -> Path | None:
    """Return the path of the listening socket that systemd passed as descriptor 3 (sd_listen_fds(3)); None if none was.

    The variables are removed, and no child inherits the socket. expected_path: the configured path, or None. Raises
    ConfigError unless exactly one descriptor was passed, a listening unix stream socket with a file, at that path.
    """
    process, count, *_ = (environment.pop(name, "") for name in (PROCESS, COUNT, NAMES, PROCESS_ID))
    if process != str(os.getpid()):
        return None
    path = _path_of(FIRST_FD) if count == "1" else None
    if path is None:
        raise ConfigError(
            f"server.endpoint: the service manager passes {count} descriptors, but must pass exactly one listening "
            "unix stream socket with a file: use one ListenStream=/run/jetsel/jetsel.sock and Accept=no in the socket "
            "unit"
        )
    if expected_path is not None and not _is_same(path, expected_path):
        raise ConfigError(
            f"server.endpoint: it is ipc://{expected_path}, and the service manager passes {path}: set "
            f"ListenStream={expected_path} in the socket unit, or the endpoint to the path that is passed, or leave it "
            "out"
        )
    return path


def _path_of(descriptor: int) -> Path | None:
    """Return the path at which this descriptor listens, None if it does not."""
    try:
        os.set_inheritable(descriptor, False)
        with socket.socket(fileno=os.dup(descriptor)) as listener:
            listens = listener.type == socket.SOCK_STREAM and listener.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            )
            path = listener.getsockname() if listener.family == socket.AF_UNIX and listens else None
    except OSError:
        return None
    return Path(path) if path and isinstance(path, str) else None  # an abstract name is bytes


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths name one file, also through links such as /var/run."""
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False
