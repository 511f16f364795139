"""Peers that stall take nothing that others need."""

from __future__ import annotations

import contextlib

import jetsel
from tests.faults.watch import held
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
