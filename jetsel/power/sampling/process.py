"""The sampler's process; the daemon starts it: `python -m jetsel.power.sampling.process`, its socket as standard input.

It holds nothing heavy: no numpy, no image, no engine. It dies with the daemon, however that dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import signal
import socket
import sys
import time

import msgspec

from jetsel.power.sampling.loop import Loop
from jetsel.power.sampling.messages import END, Start, Word
from jetsel.power.sampling.report import Statistics
from jetsel.power.sampling.ring import HEADER_BYTES, SIZE, Writer
from jetsel.power.sampling.total import Total

PR_SET_PDEATHSIG = 1  # prctl(2)
NICENESS = -15


def main() -> int:
    """Run the sampler; return the exit status."""
    # The daemon says when to leave; a terminal's Ctrl-C and a service manager's SIGTERM reach the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = socket.socket(fileno=sys.stdin.fileno())
    start = _start(connection)
    if start is None or not _dies_with(start.parent):
        return 0
    memory = mmap.mmap(start.ring_fd, SIZE)
    os.close(start.ring_fd)
    Statistics.clear(memory)
    writer = Writer(memory, time.monotonic_ns())
    total = Total(start.power, lambda word: _say(connection, word))
    with contextlib.suppress(OSError):  # where it may: a sample must not wait for a run of a model to end
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    gc.collect()
    gc.freeze()
    gc.disable()  # the loop makes no cycles; a collection would come between two samples
    header = memoryview(memory)[:HEADER_BYTES].cast("q")
    Loop(start.power, total, writer, header, lambda statistics: statistics.write(memory), connection).run()
    total.close()
    return 0


def _start(connection: socket.socket) -> Start | None:
    """Return what the daemon says first, None where it has gone."""
    line = b""
    while not line.endswith(END):
        part = connection.recv(1)
        if not part:
            return None
        line += part
    return msgspec.json.decode(line, type=Start)


def _say(connection: socket.socket, word: Word) -> None:
    with contextlib.suppress(OSError):  # the daemon has gone: the loop will see
        connection.sendall(msgspec.json.encode(word) + END)


def _dies_with(parent: int) -> bool:
    """Have the kernel kill this process when the daemon's thread that started it ends; False where it has ended."""
    with contextlib.suppress(OSError, AttributeError):  # the socket's end is the other sign
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    return os.getppid() == parent


if __name__ == "__main__":
    sys.exit(main())
