"""A command in a terminal of its own: a pseudo-terminal whose size a test chooses and whose screen it reads."""

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
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LIMIT_S = 60.0
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's alternate screen
SHOW_CURSOR = b"\x1b[?25h"
HOME = "\x1b[H"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A process whose standard streams and controlling terminal are one pseudo-terminal."""

    def __init__(self, command: Sequence[str], columns: int, rows: int, env: Mapping[str, str]) -> None:
        self._fd, self._theirs = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self._theirs)
        environment = {k: v for k, v in {**os.environ, **env}.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            command,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C and a resize reach it
        )
        self.output = b""

    def resize(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def settings(self) -> list[Any]:
        """The terminal's modes now, as termios(3) has them."""
        return termios.tcgetattr(self._theirs)

    def frame(self) -> list[str]:
        """The lines of the newest screen, without colours; none where it is not whole yet, or of another size."""
        newest = self.output.decode(errors="replace").split(HOME)[-1]
        lines = [line for line in _CODES.sub("", newest).replace("\r", "").split("\n") if line]
        return lines if len(lines) == self._rows and {len(line) for line in lines} == {self._columns} else []

    def until(self, met: Callable[[str], bool]) -> list[str]:
        """Read on until a screen is such, and return it; fails with the last one."""
        give_up = time.monotonic() + LIMIT_S
        while not met("\n".join(self.frame())):
            assert time.monotonic() < give_up, self.output[-4000:].decode(errors="replace")
            self._read(0.1)
        return self.frame()

    def end(self) -> int:
        """Read until the process has ended; return its exit status."""
        give_up = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            assert time.monotonic() < give_up, self.output[-4000:].decode(errors="replace")
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    def _read(self, limit_s: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], limit_s)
        if ready:
            self.output += os.read(self._fd, 65_536)
        return bool(ready)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._fd)
        os.close(self._theirs)
