"""A client of the running daemon that is gone leaves nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import jetsel
from tests.system.daemons import Daemon
from tests.waiting import until


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
