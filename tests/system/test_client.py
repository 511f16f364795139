"""A client and the running daemon: a call outlives a restart, and a client that is gone leaves nothing."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

import jetsel
from tests.system.daemons import Daemon, Start, drawn, wait_until_ready
from tests.waiting import until


@pytest.mark.slow
def test_a_call_under_way_survives_a_restart(start: Start) -> None:
    daemon = start()
    with jetsel.Client(daemon.endpoint) as client, ThreadPoolExecutor(1) as threads:
        client.status()
        daemon.process.send_signal(signal.SIGSTOP)
        call = threads.submit(client.classify, drawn())
        assert wait([call], 0.1).not_done
        daemon.process.kill()
        daemon.process.wait(10)
        wait_until_ready(start(ready=False))
        assert call.result(60).label


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
