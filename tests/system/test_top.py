"""`jetsel top` in a terminal of its own and in a pipe, while its daemon works, goes away and comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable

import pytest

from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.waiting import until

CONFIG = '[models]\nonly = ["xs", "s"]\n'

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's alternate screen
SHOW_CURSOR, HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"
HOME = "\x1b[H"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Top:
    """The command at work while `with` lasts; its standard streams and controlling terminal are one pseudo-terminal."""

    def __init__(self, daemon: Daemon) -> None:
        self._fd, self._theirs = pty.openpty()
        self.resize(120, 40)
        self._before = termios.tcgetattr(self._theirs)
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [*COMMAND, "top", "--endpoint", daemon.endpoint, "--interval", "0.2"],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C and a resize reach it
        )
        self._output = b""

    def resize(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def frame(self) -> list[str]:
        """The lines of the newest screen, without colours; none where it is not whole yet, or of another size."""
        newest = self._output.decode(errors="replace").split(HOME)[-1]
        lines = [line for line in _CODES.sub("", newest).replace("\r", "").split("\n") if line]
        return lines if len(lines) == self._rows and {len(line) for line in lines} == {self._columns} else []

    def until(self, met: Callable[[str], bool]) -> list[str]:
        """Read on until a screen is such, and return it."""

        def is_shown() -> bool:
            self._read()
            return met("\n".join(self.frame()))

        until(is_shown)
        return self.frame()

    def end(self) -> int:
        """Read until the process has ended; return its exit status."""
        until(lambda: not self._read() and self.process.poll() is not None)
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Whether the screen, the cursor and the modes are again as the command found them."""
        return (
            self._output.count(ENTER) == self._output.count(LEAVE) == 1
            and self._output.rfind(SHOW_CURSOR) > self._output.rfind(HIDE_CURSOR)
            and termios.tcgetattr(self._theirs) == self._before
        )

    def _read(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], 0)
        if ready:
            self._output += os.read(self._fd, 65_536)
        return bool(ready)

    def __enter__(self) -> Top:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)
        os.close(self._theirs)


def test_it_shows_what_the_daemon_does(start: Start, connect: Connect) -> None:
    daemon = start(CONFIG)
    peer = connect(daemon)
    with Top(daemon) as top:
        top.until(lambda screen: "requests: none yet" in screen)
        assert peer.classify(encoded(drawn()), model="s")["type"] == "answer"
        screen = top.until(lambda screen: "requests: 1 ok" in screen)
        assert f"process {daemon.process.pid}" in screen[0]
        assert any("ready on onnxruntime: xs, s (1 run)" in line for line in screen)
        top.resize(70, 20)
        top.until(lambda screen: "requests: 1 ok" in screen)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda top: top.type(b"\x03"), 0),
        (lambda top: top.process.send_signal(signal.SIGTERM), 128 + signal.SIGTERM),
    ],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_however_it_ends_the_terminal_is_as_before(
    shared_daemon: Daemon, end: Callable[[Top], object], status: int
) -> None:
    with Top(shared_daemon) as top:
        top.until(lambda screen: "requests" in screen)
        end(top)
        assert top.end() == status
        assert top.is_as_before()


@pytest.mark.slow
def test_a_daemon_that_goes_away_is_waited_for(start: Start) -> None:
    daemon = start(CONFIG)
    with Top(daemon) as top:
        top.until(lambda screen: f"process {daemon.process.pid}" in screen)
        daemon.stop(signal.SIGKILL)
        screen = top.until(lambda screen: "does not reply" in screen)
        assert f"process {daemon.process.pid}" in screen[0], "what was seen last stays"
        again = start(CONFIG)
        top.until(lambda screen: f"process {again.process.pid}" in screen and "does not reply" not in screen)


def test_in_a_pipe_each_look_is_a_block_of_text(shared_daemon: Daemon) -> None:
    done = jetsel("top", "--endpoint", shared_daemon.endpoint, "--interval", "0.1", "--count", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("jetsel ")]) == 3
