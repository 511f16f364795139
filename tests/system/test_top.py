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
from tests.system.daemons import Daemon, Peer, Start
from tests.waiting import until

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's alternate screen
SHOW_CURSOR, HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"
HOME = "\x1b[H"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Top:
    """The command at work while `with` lasts; its standard streams and controlling terminal are one pseudo-terminal."""

    def __init__(self, daemon: Daemon) -> None:
        self._fd, self._theirs = pty.openpty()
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._before = termios.tcgetattr(self._theirs)
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [*COMMAND, "top", "--endpoint", daemon.endpoint, "--interval", "0.2"],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
        )
        self._output = b""

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def shows(self, words: str) -> bool:
        """Read on; return whether the newest screen has these words."""
        self._read()
        return words in _CODES.sub("", self._output.decode(errors="replace").split(HOME)[-1])

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


def test_it_shows_what_the_daemon_does(shared_daemon: Daemon, peer: Peer, jpeg: bytes) -> None:
    peer.classify(jpeg)
    answered = peer.status()["requests"]["ok"]
    with Top(shared_daemon) as top:
        until(lambda: top.shows(f"process {shared_daemon.process.pid}") and top.shows(f"requests: {answered} ok"))
        peer.classify(jpeg)
        until(lambda: top.shows(f"requests: {answered + 1} ok"))


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
        until(lambda: top.shows("requests"))
        end(top)
        assert top.end() == status
        assert top.is_as_before()


@pytest.mark.slow
def test_a_daemon_that_goes_away_is_waited_for(start: Start) -> None:
    daemon = start()
    with Top(daemon) as top:
        until(lambda: top.shows(f"process {daemon.process.pid}"))
        daemon.stop(signal.SIGKILL)
        until(lambda: top.shows("does not reply") and top.shows(f"process {daemon.process.pid}"))  # what was seen last
        again = start()
        until(lambda: top.shows(f"process {again.process.pid}") and not top.shows("does not reply"))


def test_in_a_pipe_each_look_is_a_block_of_text(shared_daemon: Daemon) -> None:
    done = jetsel("top", "--endpoint", shared_daemon.endpoint, "--interval", "0.1", "--count", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("jetsel ")]) == 3
