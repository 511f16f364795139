"""Sockets that a service manager hands over (LISTEN_FDS), given to a process as systemd gives them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.daemon.callers import somebody_answers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sock"


PASSED = """
import os, pathlib, socket, sys
from jetsel.config import Server
from jetsel.daemon.listener import listen
from jetsel.errors import ConfigError
endpoint, count, offset, names = sys.argv[1:]
os.environ.update(LISTEN_PID=str(os.getpid() + int(offset)), LISTEN_FDS=count, LISTEN_FDNAMES=names)
try:
    listener = listen(Server(endpoint=endpoint or None))
except ConfigError as error:
    sys.exit(str(error))
assert not [name for name in os.environ if name.startswith("LISTEN_")], "children hear of it"
with socket.socket(fileno=listener.fd) as listening:
    inheritable = [fd for fd in range(3, 3 + int(count)) if os.get_inheritable(fd)]
    print(listener.fd, listening.getsockname(), inheritable, os.get_blocking(listener.fd), flush=True)
    listening.setblocking(True)
    listening.accept()
    listener.close()
print(listener.path.exists(), listener.path.with_name(listener.path.name + ".lock").exists())
"""


def handed_over(
    endpoint: Path | None, descriptors: list[int], pid_offset: int = 0, names: str = "", **variables: str
) -> subprocess.Popen[str]:
    """Start a process that finds these descriptors from 3 on, as a service manager passes them (sd_listen_fds(3))."""
    moves = " ".join(f"{place}<&{fd}" for place, fd in enumerate(descriptors, 3))
    command = ["/bin/bash", "-c", f'exec "$0" "$@" {moves}', sys.executable, "-c", PASSED]
    where = f"ipc://{endpoint}" if endpoint else ""
    return subprocess.Popen(
        [*command, where, str(len(descriptors)), str(pid_offset), names],
        pass_fds=descriptors,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": "/nonexistent", **variables},
    )


@contextlib.contextmanager
def listening(path: Path, kind: int = socket.SOCK_STREAM, *, listens: bool = True) -> Iterator[int]:
    with socket.socket(socket.AF_UNIX, kind) as given:
        given.bind(str(path))
        if listens:
            given.listen(4)
        yield given.fileno()


def said(process: subprocess.Popen[str]) -> str:
    """The line that the process prints once it listens; fails with what it says instead."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return line.strip()


def refused(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, ""), error
    return error.strip()


def test_a_socket_that_was_handed_over_is_used_and_left(path: Path) -> None:
    with listening(path) as given:
        before = path.lstat().st_ino
        process = handed_over(path, [given])
        assert said(process) == f"3 {path} [] False"
        assert somebody_answers(path)
        out, err = process.communicate(timeout=60)
    assert out == "True False\n", err
    assert path.lstat().st_ino == before


def test_without_an_endpoint_the_socket_that_was_handed_over_says_where(path: Path) -> None:
    with listening(path) as given:
        process = handed_over(None, [given])
        assert said(process) == f"3 {path} [] False"
        assert somebody_answers(path)
        assert process.communicate(timeout=60)[0] == "True False\n"


def test_one_at_another_path_than_the_endpoint_is_refused_with_the_repair(path: Path) -> None:
    other = path.with_name("other.sock")
    with listening(other) as given:
        error = refused(handed_over(path, [given]))
    assert f"server.endpoint: it is ipc://{path}, and the service manager passes {other}" in error
    assert f"ListenStream={path}" in error
    assert not path.exists(), "nothing listens elsewhere instead"


def test_what_is_not_one_socket_that_clients_can_be_taken_from_is_refused_with_the_repair(path: Path) -> None:
    with listening(path, listens=False) as given:
        assert "ListenStream=" in refused(handed_over(None, [given]))
    other = path.with_name("other.sock")
    with listening(other) as first, listening(path.with_name("second.sock")) as second, socket.socket() as tcp:
        assert "passes 2 " in refused(handed_over(None, [first, second]))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(1)
        assert "ListenStream=" in refused(handed_over(path, [tcp.fileno()]))


def test_what_was_handed_to_another_process_is_not_taken(path: Path) -> None:
    elsewhere = path.with_name("other.sock")
    with listening(elsewhere) as given:
        process = handed_over(path, [given], pid_offset=1)
        number, name, *_ = said(process).split()
        assert (number != "3", name) == (True, str(path))
        assert somebody_answers(path)
        assert process.communicate(timeout=60)[0] == "False False\n"


def test_a_service_without_a_socket_unit_listens_in_its_runtime_directory(path: Path) -> None:
    process = handed_over(None, [], 1, RUNTIME_DIRECTORY=f"{path.parent}:/elsewhere")
    at = path.parent / "jetsel.sock"
    assert said(process).split()[1] == str(at)
    assert somebody_answers(at)
    assert process.communicate(timeout=60)[0] == "False False\n"


def test_a_socket_that_a_service_manager_listens_at_is_never_taken_away(path: Path) -> None:
    with listening(path):
        error = refused(handed_over(path, [], 1))
        assert f"something else listens at {path}" in error
        assert "systemctl stop jetsel.socket" in error
        assert somebody_answers(path)
