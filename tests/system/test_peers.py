"""Peers that stall take nothing that others need, and clients that are gone leave nothing."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import jetsel
from tests.processes import held
from tests.system.daemons import Daemon, drawn
from tests.system.raw import greeting, message, reach, ready
from tests.waiting import until

HELLO = greeting() + ready()
HALVES = (b"", b"\xff", greeting()[:30], greeting(), greeting() + ready()[:10], HELLO, HELLO + message(b"{}")[:3])


def test_300_half_open_connections_stop_nobody_and_leave_nothing(shared_daemon: Daemon) -> None:
    before = held(shared_daemon.process.pid).descriptors
    with contextlib.ExitStack() as stack:
        for number in range(300):
            stack.enter_context(reach(shared_daemon.endpoint)).sendall(HALVES[number % len(HALVES)])
        with jetsel.Client(shared_daemon.endpoint) as client:
            for seed in range(20):
                assert client.classify(drawn(seed)).label
    until(lambda: held(shared_daemon.process.pid).descriptors <= before)


def test_clients_leave_no_thread_and_no_descriptor_behind(shared_daemon: Daemon) -> None:
    def open_now() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    with jetsel.Client(shared_daemon.endpoint) as client:
        client.status()  # ZeroMQ's own threads and descriptors stay for the next client
    before = open_now()
    for _ in range(20):
        with jetsel.Client(shared_daemon.endpoint) as client:
            client.status()
        jetsel.Client(shared_daemon.endpoint).status()  # never closed: collected
    until(lambda: open_now() <= before)  # ZeroMQ closes them in a thread of its own
