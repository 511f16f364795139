"""`jetsel top` in a terminal of its own and in a pipe, while its daemon works, hangs, goes away and comes back."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded, launch, wait_until_ready
from tests.system.terminals import ENTER, LEAVE, LIMIT_S, SHOW_CURSOR, Terminal

CONFIG = '[models]\nonly = ["xs", "s"]\n'

Open = Callable[..., Terminal]


@pytest.fixture
def top() -> Iterator[Open]:
    """Terminals that run `jetsel top` on a daemon, closed with the test."""
    opened: list[Terminal] = []

    def begin(daemon: Daemon, *more: str, columns: int = 80, rows: int = 24) -> Terminal:
        command = [*COMMAND, "top", "--endpoint", daemon.endpoint, "--interval", "0.2", *more]
        opened.append(Terminal(command, columns, rows, {"XDG_RUNTIME_DIR": "/nonexistent"}))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def is_as_before(terminal: Terminal) -> bool:
    """Whether the screen, the cursor and the modes are again as the command found them."""
    return (
        terminal.output.count(ENTER) == terminal.output.count(LEAVE) == 1
        and terminal.output.rfind(SHOW_CURSOR) > terminal.output.rfind(b"\x1b[?25l")
        and terminal.settings() == terminal.before
    )


def test_it_shows_what_the_daemon_does_and_q_ends_it(start: Start, connect: Connect, top: Open) -> None:
    daemon = start(CONFIG)
    peer = connect(daemon)
    terminal = top(daemon)
    terminal.until(lambda screen: "requests  0.0/s" in screen)
    assert terminal.settings() != terminal.before, "keys come one by one"
    image = encoded(drawn())
    for _ in range(3):
        assert peer.classify(image, model="s")["type"] == "answer"
    assert peer.classify(b"no image")["code"] == "bad-image"
    screen = terminal.until(
        lambda screen: "3 ok, 1 bad-image" in screen and re.search(r"\bs +ready +0\.0", screen) is not None
    )
    assert len(screen) == 24
    assert {len(line) for line in screen} == {80}
    assert screen[0].startswith(f"jetsel 0.1.0 ready, process {daemon.process.pid}, up ")
    assert any(
        re.match(r"ms +queue +decode +features +choice +waiting +inference +total +\(3 in \d+ s\)", line)
        for line in screen
    )
    (s,) = [line.split() for line in screen if line.startswith("s ")]
    assert s[1:4] == ["ready", "0.0", "-"], "no run since the look before"
    assert float(s[4]) <= float(s[5]) <= float(s[6])
    terminal.type(b"xq")
    assert terminal.end() == 0
    assert is_as_before(terminal)


def test_another_size_of_the_window_is_filled_at_once(shared_daemon: Daemon, top: Open) -> None:
    terminal = top(shared_daemon, "--interval", "600")
    terminal.until(lambda screen: "requests" in screen and "runs on" not in screen)
    terminal.resize(60, 12)
    terminal.until(lambda screen: "requests" in screen)
    terminal.resize(120, 40)
    terminal.until(lambda screen: "runs on" in screen)  # a wide window has room for more columns
    terminal.type(b"q")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda terminal: terminal.type(b"\x03"), 0),  # Ctrl-C
        (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 128 + signal.SIGTERM),
        (lambda terminal: terminal.process.send_signal(signal.SIGHUP), 128 + signal.SIGHUP),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP"],
)
def test_however_it_ends_the_terminal_is_as_before(
    shared_daemon: Daemon, top: Open, end: Callable[[Terminal], object], status: int
) -> None:
    terminal = top(shared_daemon)
    terminal.until(lambda screen: "requests" in screen)
    end(terminal)
    assert terminal.end() == status
    assert is_as_before(terminal)


def test_ctrl_z_does_not_leave_its_screen_behind(shared_daemon: Daemon, top: Open) -> None:
    terminal = top(shared_daemon)
    terminal.until(lambda screen: "requests" in screen)
    terminal.type(b"\x1aq")
    assert terminal.end() == 0
    assert is_as_before(terminal)


def test_a_daemon_that_goes_away_is_waited_for(tmp_path: Path, top: Open) -> None:
    daemon = launch(tmp_path, CONFIG)
    again = None
    try:
        wait_until_ready(daemon)
        terminal = top(daemon, columns=200)
        terminal.until(lambda screen: f"process {daemon.process.pid}" in screen)
        daemon.stop(signal.SIGKILL)
        screen = terminal.until(lambda screen: "is gone: start" in screen)
        assert re.match(r"no answer since \d\d:\d\d:\d\d, for \d+ s: the daemon that made .* is gone: start", screen[1])
        assert f"process {daemon.process.pid}" in screen[0], "what was seen last stays"
        again = launch(tmp_path, CONFIG)
        screen = terminal.until(lambda screen: f"ready, process {again.process.pid}" in screen)
        assert "no answer" not in "\n".join(screen)
        terminal.type(b"q")
        assert terminal.end() == 0
    finally:
        for each in (daemon, again):
            if each is not None:
                each.process.kill()
                each.process.wait()


def test_a_daemon_that_hangs_is_told_of_and_does_not_hold_up_the_end(start: Start, top: Open) -> None:
    daemon = start(CONFIG)
    terminal = top(daemon)
    terminal.until(lambda screen: "requests" in screen)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        terminal.until(lambda screen: "no answer since" in screen)
        terminal.type(b"q")
        assert terminal.end() == 0
        assert is_as_before(terminal)
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_where_nobody_listens_it_says_so_and_ends(tmp_path: Path) -> None:
    done = jetsel("top", "--endpoint", f"ipc://{tmp_path}/none.sock")
    assert done.returncode == 1
    assert "jetsel serve" in done.stderr


def test_in_a_pipe_each_look_is_a_block_of_text(shared_daemon: Daemon) -> None:
    done = jetsel("top", "--endpoint", shared_daemon.endpoint, "--interval", "0.1", "--count", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    heads = [line for line in done.stdout.splitlines() if line.startswith("jetsel ")]
    assert len(heads) == 3
    assert len({re.search(r"up \d", head) is not None for head in heads}) == 1
    assert " since the start" in done.stdout
    assert " over 0." in done.stdout, "from the second look on, rates are of the time since the look before"


def test_a_pipe_whose_reader_has_enough_ends_it_without_a_trace(shared_daemon: Daemon) -> None:
    command = [*COMMAND, "top", "--endpoint", shared_daemon.endpoint, "--interval", "0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as blocks, process.stderr as errors:
        assert blocks.readline().startswith("jetsel ")
        blocks.close()
        process.wait(LIMIT_S)
        assert "Traceback" not in errors.read()
