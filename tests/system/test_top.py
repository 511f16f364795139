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

import pytest

from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Daemon, Peer, Start
from tests.waiting import until

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's alternate screen
HOME = "\x1b[H"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Top:
    """The command at work while `with` lasts; its standard streams are a pseudo-terminal of 40 lines."""

    def __init__(self, daemon: Daemon) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        command = [*COMMAND, "top", "--endpoint", daemon.endpoint, "--interval", "0.2"]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        self.process = subprocess.Popen(command, env={**environment, "TERM": "xterm-256color"}, **streams)
        self._theirs, self.output = theirs, b""

    def shows(self, words: str) -> bool:
        """Read on; return whether the newest screen has these words."""
        while select.select([self._fd], [], [], 0)[0]:
            self.output += os.read(self._fd, 65_536)
        return words in _CODES.sub("", self.output.decode(errors="replace").split(HOME)[-1])

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


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_however_it_ends_the_screen_is_as_before(shared_daemon: Daemon, number: int, status: int) -> None:
    with Top(shared_daemon) as top:
        until(lambda: top.shows("requests"))
        top.process.send_signal(number)
        assert top.process.wait(60) == status
        top.shows("")
        assert top.output.count(ENTER) == top.output.count(LEAVE) == 1


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
