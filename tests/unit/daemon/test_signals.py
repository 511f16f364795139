"""Signals that steer the daemon: each is counted and ends a wait, whenever it comes; in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.waiting import LIMIT_S

# Waits as the daemon's main thread does, beside threads that compute, and prints how many stops it has seen.
WAITING = """
import sys, threading
from jetsel.daemon.signals import Signals
sys.setswitchinterval(0.0005)
signals = Signals()
def compute():
    while True:
        sum(range(200))
for _ in range(2):
    threading.Thread(target=compute, daemon=True).start()
seen = 0
print("waits", flush=True)
while True:
    signals.wait()
    if signals.stops != seen:
        seen = signals.stops
        print(seen, flush=True)
"""

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


def test_no_signal_is_lost_beside_threads_that_compute() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"waits\n"
            for number in range(1, 31):
                process.send_signal(signal.SIGHUP)
                process.send_signal(signal.SIGTERM)
                assert process.stdout.readline() == b"%d\n" % number
        finally:
            process.kill()


def test_signals_are_counted_by_kind_and_a_wait_ends_by_each_other_means_too() -> None:
    command = [sys.executable, "-c", COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout == "2 True False\nwoken\n", done.stderr
