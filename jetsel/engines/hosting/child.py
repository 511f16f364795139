"""The one way to start a process, to see how it ended, and to end it with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

GONE_S = 5.0  # that a killed process may take to go: more, and the kernel holds it
STANDARD_ERROR = 2


class Child:
    """A process in a session of its own, which reads nothing and writes to our standard error."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        output: int = STANDARD_ERROR,
    ) -> None:
        """Start it; raises OSError where it cannot be.

        environment: None is our own. pass_fds: descriptors that it inherits. output: a descriptor, subprocess.PIPE or
        subprocess.DEVNULL, for what it prints, errors included.
        """
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            env=environment,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def output(self, limit_s: float) -> str | None:
        """Return all that it printed into its pipe until its end; None, and it is killed, where that takes longer."""
        try:
            printed, _ = self._process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.end()
            self._process.communicate()
            return None
        return str(printed.decode(errors="replace"))

    def end(self, patience_s: float = 0.0) -> str:
        """Kill it, where it has not ended by itself within the patience; return how it ended, in words."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            status = self._process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            return "killed, and not gone yet: the kernel holds it"
        if status >= 0:
            return f"exit status {status}"
        known = {item.value: item.name for item in signal.Signals}
        return f"ended by {known.get(-status, f'signal {-status}')}"
