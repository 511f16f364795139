"""`jetsel top` in a terminal of its own and in a pipe, while its daemon works, goes away and comes back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.system.terminals import ENTER, LEAVE, SHOW_CURSOR, Terminal

CONFIG = '[models]\nonly = ["xs", "s"]\n'

Open = Callable[..., Terminal]


@pytest.fixture
def top() -> Iterator[Open]:
    """Terminals that run `jetsel top` on a daemon, closed with the test."""
    opened: list[Terminal] = []

    def begin(daemon: Daemon) -> Terminal:
        command = [*COMMAND, "top", "--endpoint", daemon.endpoint, "--interval", "0.2"]
        opened.append(Terminal(command, 120, 40, {"XDG_RUNTIME_DIR": "/nonexistent"}))
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
    terminal.until(lambda screen: "requests: none yet" in screen)
    assert peer.classify(encoded(drawn()), model="s")["type"] == "answer"
    screen = terminal.until(lambda screen: "requests: 1 ok" in screen)
    assert f"process {daemon.process.pid}" in screen[0]
    assert any(line.split()[:1] == ["s"] and "ready" in line for line in screen)
    terminal.resize(70, 20)
    terminal.until(lambda screen: "requests: 1 ok" in screen)
    terminal.type(b"\x1axq")  # neither Ctrl-Z nor another key ends or stops it
    assert terminal.end() == 0
    assert is_as_before(terminal)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda terminal: terminal.type(b"\x03"), 0),
        (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 128 + signal.SIGTERM),
    ],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_however_it_ends_the_terminal_is_as_before(
    shared_daemon: Daemon, top: Open, end: Callable[[Terminal], object], status: int
) -> None:
    terminal = top(shared_daemon)
    terminal.until(lambda screen: "requests" in screen)
    end(terminal)
    assert terminal.end() == status
    assert is_as_before(terminal)


@pytest.mark.slow
def test_a_daemon_that_goes_away_is_waited_for(start: Start, top: Open) -> None:
    daemon = start(CONFIG)
    terminal = top(daemon)
    terminal.until(lambda screen: f"process {daemon.process.pid}" in screen)
    daemon.stop(signal.SIGKILL)
    screen = terminal.until(lambda screen: "no answer" in screen)
    assert f"process {daemon.process.pid}" in screen[0], "what was seen last stays"
    again = start(CONFIG)
    terminal.until(lambda screen: f"process {again.process.pid}" in screen and "no answer" not in screen)


def test_in_a_pipe_each_look_is_a_block_of_text(shared_daemon: Daemon) -> None:
    done = jetsel("top", "--endpoint", shared_daemon.endpoint, "--interval", "0.1", "--count", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("jetsel ")]) == 3
