"""Signals that steer the daemon: none is slept over, at whatever moment it comes, in a process of their own."""

from __future__ import annotations

import random
import select
import signal
import subprocess
import sys
import time

LIMIT_S = 60.0  # a signal that is noted ends a wait at once; one that is lost never does
ROUNDS = 200

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
    signals.take_hangup()
    signals.wait()
    if signals.stops != seen:
        seen = signals.stops
        print(seen, flush=True)
"""

# Gets signals in its own main thread and says what is left of them.
COUNTING = """
import os, signal
from jetsel.daemon.signals import Signals
signals = Signals()
for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    os.kill(os.getpid(), number)
signals.wait()
print(signals.stops, signals.take_hangup(), signals.take_hangup(), flush=True)
signals.wait(0.01)
signals.wake()
signals.wait()
print("woken", flush=True)
"""


def test_a_signal_that_comes_as_the_wait_begins_ends_it() -> None:
    moments = random.Random(1)
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"waits\n"
            for number in range(1, ROUNDS + 1):
                process.send_signal(signal.SIGHUP)
                come_s = time.perf_counter() + moments.uniform(0, 0.003)
                while time.perf_counter() < come_s:
                    pass
                process.send_signal(signal.SIGTERM)
                readable, _, _ = select.select([process.stdout], [], [], LIMIT_S)
                assert readable, f"SIGTERM {number} is lost"
                assert process.stdout.readline() == b"%d\n" % number
        finally:
            process.kill()


def test_signals_are_counted_by_kind_and_a_wait_ends_by_each_other_means_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTING], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.stdout == "2 True False\nwoken\n", done.stderr
