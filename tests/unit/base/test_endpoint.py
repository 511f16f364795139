"""Where a daemon is looked for, in which order, and what is said where nobody answers."""

import grp
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.base import endpoint
from jetsel.base.endpoint import find, why_absent
from jetsel.base.errors import ConfigError, NoDaemonError


@pytest.fixture
def listen() -> Iterator[list[socket.socket]]:
    """Sockets that close with the test."""
    opened: list[socket.socket] = []
    yield opened
    for one in opened:
        one.close()


def bound(path: Path, opened: list[socket.socket], *, listening: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    opened.append(one)
    one.bind(str(path))
    if listening:
        one.listen(1)
    return path


@pytest.fixture
def system_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of the test's own for the system's socket; nothing stands there yet."""
    path = tmp_path / "system" / "jetsel.sock"
    monkeypatch.setattr(endpoint, "SYSTEM_SOCKET", str(path))
    return path


def test_each_place_is_asked_only_where_those_before_say_nothing(
    tmp_path: Path, system_socket: Path, listen: list[socket.socket]
) -> None:
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path / "user")}
    everything = {**runtime, "JETSEL_ENDPOINT": "ipc:///by/variable.sock"}
    with pytest.raises(NoDaemonError):
        find(None, runtime)
    bound(system_socket, listen)
    assert find(None, runtime) == f"ipc://{system_socket}"
    users = tmp_path / "user" / "jetsel" / "jetsel.sock"
    users.parent.mkdir(parents=True)
    users.write_text("")  # no socket
    assert find(None, runtime) == f"ipc://{system_socket}"
    users.unlink()
    bound(users, listen)
    assert find(None, runtime) == f"ipc://{users}"
    assert find(None, everything) == "ipc:///by/variable.sock"
    assert find("ipc:///by/argument.sock", everything) == "ipc:///by/argument.sock"


def test_without_the_variable_the_users_runtime_directory_counts_if_it_is_there(
    tmp_path: Path, system_socket: Path, listen: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """cron and sudo set no $XDG_RUNTIME_DIR; the daemon, started from a login, has its socket there."""
    monkeypatch.setattr(endpoint, "USERS_RUN", str(tmp_path))
    assert endpoint.user_socket({}) == f"/tmp/jetsel-{os.getuid()}/jetsel.sock"
    users = bound(tmp_path / str(os.getuid()) / "jetsel" / "jetsel.sock", listen)
    assert find(None, {}) == f"ipc://{users}"
    assert endpoint.user_socket({"XDG_RUNTIME_DIR": "/run/mine"}) == "/run/mine/jetsel/jetsel.sock"


@pytest.mark.parametrize("given", ["j.sock", "tcp://127.0.0.1:5555", "inproc://a", "IPC:///a", " /a"])
def test_what_names_no_endpoint_is_refused_with_its_source(given: str) -> None:
    with pytest.raises(ConfigError, match=r"^the endpoint is .*: use ipc:///"):
        find(given, {})
    with pytest.raises(ConfigError, match=r"^\$JETSEL_ENDPOINT is .*: use ipc:///"):
        find(None, {"JETSEL_ENDPOINT": given})


def test_a_folder_under_tmp_that_somebody_else_made_is_passed_over(
    system_socket: Path, listen: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        users = bound(Path(folder) / "jetsel" / "jetsel.sock", listen)
        assert find(None, {"XDG_RUNTIME_DIR": folder}) == f"ipc://{users}"
        owner = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
        with pytest.raises(NoDaemonError):
            find(None, {"XDG_RUNTIME_DIR": folder})


def absence(where: str | Path) -> str:
    error = why_absent(f"ipc://{where}" if isinstance(where, Path) else where)
    assert isinstance(error, NoDaemonError)
    return str(error)


def test_a_socket_whose_daemon_is_gone(tmp_path: Path, listen: list[socket.socket]) -> None:
    path = bound(tmp_path / "j.sock", listen, listening=False)
    assert absence(path) == f"the daemon that made {path} is gone: start one with: jetsel serve"


FORBIDDEN = """
import os, sys
from jetsel.base.endpoint import why_absent
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(why_absent("ipc://" + sys.argv[1]))
"""


def test_a_socket_that_this_user_may_not_use_names_its_group(listen: list[socket.socket]) -> None:
    # Root may use every socket, so where the tests run as root another user asks, who may not enter tmp_path.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        path = bound(Path(folder) / "j.sock", listen)
        path.chmod(0o000)
        done = subprocess.run([sys.executable, "-c", FORBIDDEN, str(path)], capture_output=True, text=True, check=False)
        group = grp.getgrgid(path.stat().st_gid).gr_name
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"this user may not use {path}: {path} belongs to the group {group}; ")
    assert f"sudo usermod -aG {group} $USER" in done.stdout
