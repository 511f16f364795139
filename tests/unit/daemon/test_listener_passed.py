"""Where the daemon listens: at the socket that a service manager hands over (sd_listen_fds(3)), or in its folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jetsel.base.config import Server
from jetsel.base.errors import ConfigError
from jetsel.daemon import listener
from jetsel.daemon.listener import Listener, listen
from tests.unit.daemon.ports import somebody_answers

HandOver = Callable[..., dict[str, str]]


@pytest.fixture
def hand_over(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandOver]:
    """Binds a socket, has it be the first that is passed, and returns the environment that says so."""
    with ExitStack() as stack:

        def give(at: Path, *, count: int = 1, listens: bool = True, pid: int | None = None) -> dict[str, str]:
            given = stack.enter_context(socket.socket(socket.AF_UNIX))
            given.bind(str(at))
            if listens:
                given.listen(4)
            given.set_inheritable(True)
            monkeypatch.setattr(listener, "FIRST_FD", given.fileno())
            return {"LISTEN_PID": str(pid or os.getpid()), "LISTEN_FDS": str(count), "LISTEN_FDNAMES": "a", "HOME": "/"}

        yield give


def listening(environment: dict[str, str], endpoint: Path | None = None) -> Listener:
    return listen(Server(endpoint=f"ipc://{endpoint}" if endpoint else None), environment)


def refused(environment: dict[str, str], endpoint: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        listening(environment, endpoint)
    return str(caught.value)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_socket_that_was_handed_over_is_used_and_left(path: Path, hand_over: HandOver, is_named: bool) -> None:
    environment = hand_over(path)
    found = listening(environment, path if is_named else None)
    assert environment == {"HOME": "/"}, "children hear nothing of it"
    assert (found.path, found.fd, found.is_passed) == (path, listener.FIRST_FD, True)
    assert (os.get_inheritable(found.fd), os.get_blocking(found.fd)) == (False, False)
    assert somebody_answers(path)
    found.close()
    assert list(path.parent.iterdir()) == [path]


def test_one_at_another_path_than_the_endpoint_is_refused_with_the_repair(path: Path, hand_over: HandOver) -> None:
    other = path.with_name("other.sock")
    error = refused(hand_over(other), path)
    assert f"server.endpoint: it is ipc://{path}, and the service manager passes {other}" in error
    assert f"ListenStream={path}" in error
    assert not path.exists(), "nothing listens elsewhere instead"


def test_what_is_not_one_socket_that_clients_can_be_taken_from_is_refused_with_the_repair(
    path: Path, hand_over: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ListenStream=" in refused(hand_over(path, listens=False))
    assert "passes 2 " in refused(hand_over(path.with_name("second"), count=2))
    monkeypatch.setattr(listener, "FIRST_FD", 9999)
    assert "ListenStream=" in refused({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})


def test_what_was_handed_to_another_process_is_not_taken(path: Path, hand_over: HandOver) -> None:
    found = listening(hand_over(path.with_name("other.sock"), pid=os.getpid() + 1), path)
    assert (found.path, found.is_passed) == (path, False)
    os.close(found.fd)
    found.close()


def test_a_service_without_a_socket_unit_listens_in_its_runtime_directory(path: Path) -> None:
    found = listening({"RUNTIME_DIRECTORY": f"{path.parent}:/elsewhere"})
    assert found.path == path.parent / "jetsel.sock"
    assert somebody_answers(found.path)
    os.close(found.fd)
    found.close()


def test_a_socket_that_a_service_manager_listens_at_is_never_taken_away(path: Path, hand_over: HandOver) -> None:
    hand_over(path)
    error = refused({}, path)
    assert f"something else listens at {path}" in error
    assert "systemctl stop jetsel.socket" in error
    assert somebody_answers(path)
