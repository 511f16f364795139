"""Run a program that may misbehave: its time and its output have limits, and nothing that it started outlives it."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

OUTPUT_BYTES = 65_536  # what is asked of such programs is short
ERRORS_BYTES = 4096  # the last words are the ones that explain
_LOOK_S = 0.1  # how often it is looked whether it ended: what it started may hold its pipes open
_PART_BYTES = 65_536


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    status: the exit status, negative for a signal (subprocess.Popen.returncode); None where it was killed here, for its
    time or its output. output: stdout, as far as it was read. errors: the end of stderr.
    """

    status: int | None
    output: bytes
    errors: bytes
    is_too_long: bool

    @property
    def words(self) -> str:
        """The line of stderr that says most: a traceback's last, anything else's first; "" where there is none."""
        lines = self.errors.decode(errors="replace").strip().splitlines() or [""]
        return " ".join(lines[-1 if any(line.startswith("Traceback") for line in lines) else 0].split())


def run(command: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None) -> Ended:
    """Run the command in / with nothing to read, and kill its process group once it ended or is past a limit.

    environment: None is this process's own. Raises OSError where it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    has_ended = False
    try:
        has_ended = _read(process, {process.stdout: output, process.stderr: errors}, time.monotonic() + limit_s)
    finally:
        # Nobody has waited for it yet, so its number is still its own, and its group's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        process.stdout.close()
        process.stderr.close()
    is_too_long = len(output) > OUTPUT_BYTES
    kept = bytes(output[:OUTPUT_BYTES])
    return Ended(status if has_ended and not is_too_long else None, kept, bytes(errors), is_too_long)


def _read(process: subprocess.Popen[bytes], pipes: dict[IO[bytes], bytearray], give_up: float) -> bool:
    """Read both pipes until the process has ended or must be killed; return whether it has ended."""
    assert process.stdout is not None
    output = pipes[process.stdout]
    with selectors.DefaultSelector() as selector:
        for pipe, kept in pipes.items():
            selector.register(pipe, selectors.EVENT_READ, kept)
        while len(output) <= OUTPUT_BYTES and time.monotonic() < give_up:
            has_ended = _has_ended(process)  # asked before the pipes: what it wrote until then is there to be read
            ready = selector.select(0 if has_ended else _LOOK_S) if selector.get_map() else []
            for key, _ in ready:
                part = os.read(key.fd, _PART_BYTES)
                key.data.extend(part)
                if key.data is not output:
                    del key.data[:-ERRORS_BYTES]
                if not part:
                    selector.unregister(key.fileobj)
            if has_ended and not ready:
                return True
            if not selector.get_map() and not has_ended:
                time.sleep(_LOOK_S)
    return _has_ended(process)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is not waited for, so that its number stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
