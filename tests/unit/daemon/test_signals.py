"""Signals that steer the daemon: each is counted and ends a wait, whenever it comes; in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.waiting import LIMIT_S

# Gets signals in its own main thread and says what is left of them.
COUNTING = """
import os, signal, threading
from jetsel.daemon.signals import Signals
signals = Signals()
for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    os.kill(os.getpid(), number)
signals.wait()
print(signals.stops, signals.take_hangup(), signals.take_hangup(), flush=True)
signals.wait(0.01)
threading.Timer(0.01, signals.wake).start()
signals.wait()
print("woken", flush=True)
"""


def test_signals_are_counted_by_kind_and_a_wait_ends_by_each_other_means_too() -> None:
    command = [sys.executable, "-c", COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout == "2 True False\nwoken\n", done.stderr
