"""Sockets that a service manager hands over (LISTEN_FDS), given to a process as systemd gives them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sock"


def somebody_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0


PASSED = """
import os, socket, sys, pathlib
from jetsel.daemon.listener import Listener
os.environ["LISTEN_PID"] = str(os.getpid() + int(sys.argv[3]))
os.environ["LISTEN_FDS"] = sys.argv[2]
path = pathlib.Path(sys.argv[1])
listener = Listener(path, None)
with socket.socket(fileno=listener.fd) as listening:
    flags = os.get_inheritable(listener.fd), os.get_blocking(listener.fd)
    print(listener.fd, listening.getsockname(), *flags, flush=True)
    listening.setblocking(True)
    listening.accept()
    listener.close()
print(path.exists(), path.with_name("j.sock.lock").exists())
"""


def handed_over(path: Path, descriptors: list[int], pid_offset: int = 0) -> subprocess.Popen[str]:
    """Start a process that finds these descriptors from 3 on, as a service manager passes them (sd_listen_fds(3))."""
    moves = " ".join(f"{place}<&{fd}" for place, fd in enumerate(descriptors, 3))
    command = ["/bin/bash", "-c", f'exec "$0" "$@" {moves}', sys.executable, "-c", PASSED]
    return subprocess.Popen(
        [*command, str(path), str(len(descriptors)), str(pid_offset)],
        pass_fds=descriptors,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_socket_that_was_handed_over_is_used_and_left(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as given, path.with_name("log").open("w") as other:
        given.bind(str(path))
        given.listen(4)
        before = path.lstat().st_ino
        process = handed_over(path, [other.fileno(), given.fileno()])
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"4 {path} False False\n", process.communicate()[1]
        assert somebody_answers(path)
        out, err = process.communicate(timeout=60)
    assert out == "True False\n", err
    assert path.lstat().st_ino == before


def test_what_was_handed_to_another_process_is_not_taken(path: Path) -> None:
    elsewhere = path.with_name("other.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as given:
        given.bind(str(elsewhere))
        given.listen(4)
        process = handed_over(path, [given.fileno()], pid_offset=1)
        assert process.stdout is not None
        number, name, *_ = process.stdout.readline().split()
        assert (number != "3", name) == (True, str(path))
        assert somebody_answers(path)
        assert process.communicate(timeout=60)[0] == "False False\n"
