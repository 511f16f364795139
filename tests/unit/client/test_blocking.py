"""What the blocking client alone promises: threads may share it, and so may a process that was forked off."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import NoReplyError
from tests.unit.client.peer import Peer, daemon_like, echo, silent
from tests.waiting import until


def test_threads_that_share_a_client_get_their_own_answers(path: Path) -> None:
    with Peer(path, echo) as peer, jetsel.Client(peer.endpoint) as client, ThreadPoolExecutor(8) as threads:
        names = [f"photograph {i}" for i in range(100)]
        found = threads.map(lambda name: client.classify(name.encode()).label, names)
        assert list(found) == names


def test_a_thread_that_never_got_its_turn_says_so(path: Path) -> None:
    with Peer(path, silent) as peer, jetsel.Client(peer.endpoint) as client, ThreadPoolExecutor(1) as threads:
        other = threads.submit(client.status, timeout_ms=1000)
        until(lambda: peer.seen)
        with pytest.raises(NoReplyError, match="another thread"):
            client.status(timeout_ms=50)
        with pytest.raises(NoReplyError, match="within 1000 ms"):
            other.result(20)


FORKED = """
import os, sys, jetsel
client = jetsel.Client(sys.argv[1], timeout_ms=5000)
client.status()
child = os.fork()
if child == 0:
    os._exit(0 if client.status().state == "ready" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(client.status().state)
"""


def test_a_forked_process_gets_a_connection_of_its_own(path: Path) -> None:
    with Peer(path, daemon_like) as peer:
        command = [sys.executable, "-c", FORKED, peer.endpoint]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert found.stdout == "ready\n", found.stderr
        assert len(peer.seen) == 3
