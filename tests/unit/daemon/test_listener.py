"""Where the daemon listens: its socket's file, or the socket that a service manager hands over (sd_listen_fds(3))."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jetsel.base.config import ServerSettings
from jetsel.base.errors import ConfigError
from jetsel.daemon import listener
from jetsel.daemon.listener import LONGEST_PATH, RUNTIME, Listener, listen, make_private_folder
from tests.unit.daemon.ports import somebody_answers


@contextlib.contextmanager
def listening(path: Path, group: str | None = None) -> Iterator[Listener]:
    """A listener whose descriptor, the server's to close in the daemon, is closed here."""
    found = Listener(path, group)
    try:
        yield found
    finally:
        os.close(found.fd)
        found.close()


def refused(path: Path, group: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        Listener(path, group)
    return str(caught.value)


def test_it_listens_with_its_mode_until_it_is_closed(path: Path) -> None:
    with listening(path):
        assert somebody_answers(path)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o660
        assert path.lstat().st_gid == os.getgid()
    assert list(path.parent.iterdir()) == []


def test_it_listens_where_clients_look_unless_the_configuration_names_another_place(tmp_path: Path) -> None:
    variable = {"JETSEL_ENDPOINT": f"ipc://{tmp_path}/variable.sock", RUNTIME: str(tmp_path)}
    for server, environment, expected in (
        (ServerSettings(), variable, "variable.sock"),
        (ServerSettings(f"ipc://{tmp_path}/own.sock"), variable, "own.sock"),
        (ServerSettings(), {"RUNTIME_DIRECTORY": f"{tmp_path}:/elsewhere"}, "jetsel.sock"),
    ):
        found = listen(server, environment)
        os.close(found.fd)
        found.close()
        assert found.path == tmp_path / expected


def test_an_error_names_the_setting_that_the_path_is_from(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "j.sock"
    assert refused_to_listen({}, nowhere).startswith("server.endpoint: cannot listen at ")
    variable = {"JETSEL_ENDPOINT": f"ipc://{nowhere}"}
    assert refused_to_listen(variable).startswith("$JETSEL_ENDPOINT: cannot listen at ")


def test_an_unknown_group_is_refused_and_nothing_is_left(path: Path) -> None:
    said = refused(path, "no-such-group")
    assert said.startswith("server.group: there is no group 'no-such-group' here; example: ")
    assert list(path.parent.iterdir()) == []


def test_a_live_one_of_another_process_is_refused_by_that_process(path: Path) -> None:
    script = "import sys, pathlib\nfrom jetsel.daemon.listener import Listener\n"
    script += "Listener(pathlib.Path(sys.argv[1]), None)\nprint('ready', flush=True)\nsys.stdin.read()"
    holder = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert f"(process {process.pid})" in refused(path)
        assert somebody_answers(path)
        process.kill()
    assert path.is_socket(), "a killed process cannot tidy up"
    with listening(path):
        assert somebody_answers(path)


def test_what_is_no_socket_is_never_removed(path: Path) -> None:
    path.write_text("dear diary")
    assert f"{path} exists and is not a socket" in refused(path)
    assert path.read_text() == "dear diary"
    assert not path.with_name("j.sock.lock").exists()


def test_what_takes_the_path_while_it_listens_is_left_at_the_end(path: Path) -> None:
    with listening(path):
        path.unlink()
        path.write_text("dear diary")
    assert path.read_text() == "dear diary"


def test_a_link_in_place_of_the_lock_is_not_followed(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("dear diary")
    path.with_name("j.sock.lock").symlink_to(precious)
    assert "cannot listen at" in refused(path)
    assert precious.read_text() == "dear diary"


RACER = """
import os, sys, pathlib
from jetsel.daemon.listener import Listener
from jetsel.base.errors import ConfigError
path = pathlib.Path(sys.argv[1])
won = lost = 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(150):
    try:
        listener = Listener(path, None)
    except ConfigError as error:
        assert "another jetsel" in str(error), error
        lost += 1
        continue
    owner = path.with_name(path.name + ".owner")  # whoever owns the path is alone with it
    os.close(os.open(owner, os.O_CREAT | os.O_EXCL))
    owner.unlink()
    os.close(listener.fd)
    listener.close()
    won += 1
print(won, lost)
"""


def test_of_several_that_start_and_stop_at_once_never_two_own_the_path(path: Path) -> None:
    command = [sys.executable, "-c", RACER, str(path)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = 0
    for racer in racers:
        out, err = racer.communicate(timeout=120)
        assert racer.returncode == 0, err
        won += int(out.split()[0])
    assert won >= 1
    assert list(path.parent.iterdir()) == []


def test_a_path_longer_than_a_socket_s_may_be_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    room = LONGEST_PATH - len(os.fsencode(tmp_path)) - 1
    longest = tmp_path / ("x" * room)
    with listening(longest):
        assert somebody_answers(longest)
    assert f"longer than the {LONGEST_PATH} bytes" in refused(tmp_path / ("x" * (room + 1)))
    assert f"longer than the {LONGEST_PATH} bytes" in refused(tmp_path / ("é" * (room // 2 + 1)))
    assert list(tmp_path.iterdir()) == []


def test_a_private_folder_is_made_closed_and_a_link_or_a_file_is_none(tmp_path: Path) -> None:
    folder, link, file = tmp_path / "jetsel", tmp_path / "link", tmp_path / "file"
    for _ in range(2):  # made, and found again
        make_private_folder(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    link.symlink_to(tmp_path)
    file.write_text("")
    for place in (link, file, tmp_path / "no" / "folder"):
        with pytest.raises(ConfigError, match=r"set server\.endpoint or"):
            make_private_folder(place)


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


def at(endpoint: Path | None) -> ServerSettings:
    return ServerSettings(endpoint=f"ipc://{endpoint}" if endpoint else None)


def refused_to_listen(environment: dict[str, str], endpoint: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        listen(at(endpoint), environment)
    return str(caught.value)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_socket_that_was_handed_over_is_used_and_left(path: Path, hand_over: HandOver, is_named: bool) -> None:
    environment = hand_over(path)
    found = listen(at(path if is_named else None), environment)
    assert environment == {"HOME": "/"}, "children hear nothing of it"
    assert (found.path, found.fd, found.is_passed) == (path, listener.FIRST_FD, True)
    assert (os.get_inheritable(found.fd), os.get_blocking(found.fd)) == (False, False)
    assert somebody_answers(path)
    found.close()
    assert list(path.parent.iterdir()) == [path]


def test_one_at_another_path_than_the_endpoint_is_refused_with_the_repair(path: Path, hand_over: HandOver) -> None:
    other = path.with_name("other.sock")
    error = refused_to_listen(hand_over(other), path)
    assert f"server.endpoint: it is ipc://{path}, and the service manager passes {other}" in error
    assert f"ListenStream={path}" in error
    assert not path.exists(), "nothing listens elsewhere instead"


def test_what_is_not_one_socket_that_clients_can_be_taken_from_is_refused_with_the_repair(
    path: Path, hand_over: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ListenStream=" in refused_to_listen(hand_over(path, listens=False))
    assert "passes 2 " in refused_to_listen(hand_over(path.with_name("second"), count=2))
    monkeypatch.setattr(listener, "FIRST_FD", 9999)
    assert "ListenStream=" in refused_to_listen({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})


def test_what_was_handed_to_another_process_is_not_taken(path: Path, hand_over: HandOver) -> None:
    found = listen(at(path), hand_over(path.with_name("other.sock"), pid=os.getpid() + 1))
    assert (found.path, found.is_passed) == (path, False)
    os.close(found.fd)
    found.close()


def test_a_socket_that_a_service_manager_listens_at_is_never_taken_away(path: Path, hand_over: HandOver) -> None:
    hand_over(path)
    error = refused_to_listen({}, path)
    assert f"something else listens at {path}" in error
    assert "systemctl stop jetsel.socket" in error
    assert somebody_answers(path)
