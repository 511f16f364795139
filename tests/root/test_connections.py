"""Another user takes every connection that there is to be had, or ever more: root is let in all the same."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import jetsel
from tests.root.test_trust import ADMIN_GROUP, GUEST, become
from tests.system.daemons import drawn, launch, wait_until_ready

LIMIT_S = 60.0
CLIENTS = 150
MOST = 60
CROWD = f"""
import sys, zmq
context = zmq.Context()
peers = [context.socket(zmq.DEALER) for _ in range({CLIENTS})]
for peer in peers:
    peer.setsockopt(zmq.LINGER, 0)
    peer.connect(sys.argv[1])
print("here", flush=True)
sys.stdin.read()
"""
FLOODS = 4
FLOOD = """
import socket, sys
print("here", flush=True)
while True:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(sys.argv[1])
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter; pytest's own is closed to them."""
    with TemporaryDirectory(prefix="jetsel-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_user_who_takes_all_connections_has_half_of_them_and_root_is_let_in(folder: Path) -> None:
    daemon = launch(folder, f'[server]\nmax_clients = {MOST}\ngroup = "{ADMIN_GROUP}"\n')
    wait_until_ready(daemon)
    command = [*become(GUEST, "nogroup", ADMIN_GROUP), sys.executable, "-c", CROWD, daemon.endpoint]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdout is not None
        assert crowd.stdout.readline() == "here\n"
        give_up_s = time.monotonic() + LIMIT_S
        while "client-has-its-share" not in daemon.log.read_text():
            assert time.monotonic() < give_up_s, daemon.log.read_text()
            time.sleep(0.05)
        for _ in range(5):
            with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
                assert client.classify(drawn()).label
        with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
            assert client.reload().changed == []
        crowd.communicate("", timeout=LIMIT_S)
    assert daemon.stop() == 0
    assert "uid 65534 has all the connections that one client may have, 30" in daemon.log.read_text()


def test_users_who_connect_without_end_keep_root_from_nothing(folder: Path) -> None:
    daemon = launch(folder, f'[server]\nclient_connections = 2\ngroup = "{ADMIN_GROUP}"\n')
    wait_until_ready(daemon)
    path = daemon.endpoint.removeprefix("ipc://")
    command = [*become(GUEST, "nogroup", ADMIN_GROUP), sys.executable, "-c", FLOOD, path]
    with ExitStack() as stack:
        for _ in range(FLOODS):
            flood = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(flood.kill)
            assert flood.stdout is not None
            assert flood.stdout.readline() == "here\n"
        for _ in range(20):
            with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
                assert client.status().state == "ready"
        with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
            assert client.classify(drawn()).label
    assert daemon.stop() == 0
