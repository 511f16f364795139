"""Few open files and little memory: short forms of tests/faults/descriptors.py and memory.py."""

from __future__ import annotations

import contextlib
import resource
import socket
from pathlib import Path

import pytest

import jetsel
from tests.faults.descriptors import HOSTED, crowd
from tests.faults.memory import photos, squeeze
from tests.system.curve import Keys
from tests.system.daemons import Start, drawn, free_port
from tests.system.raw import address_of

OPEN_FILES = 200
CLIENTS = 300
LIMIT_S = 20.0


@pytest.fixture
def _many_files() -> None:
    """The clients are this process's, and have two open files each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * CLIENTS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * CLIENTS), hard))


@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_with_more_clients_than_open_files_some_wait_and_nobody_is_hurt(start: Start, kind: str) -> None:
    port = free_port()
    config = f'[server]\ntcp = "tcp://127.0.0.1:{port}"\n{HOSTED}'
    daemon = start(config, prefix=("prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}"))
    found = crowd(daemon, daemon.endpoint if kind == "ipc" else f"tcp://127.0.0.1:{port}", CLIENTS, is_hosted=True)
    assert not found.wrong, daemon.log.read_text()
    assert 0 < found.let_in < OPEN_FILES
    assert found.open_files < OPEN_FILES
    assert "more wait" in daemon.log.read_text()
    assert daemon.stop() == 0


@pytest.mark.usefixtures("_many_files")
def test_max_clients_is_kept_and_the_next_come_in_when_some_have_left(start: Start) -> None:
    daemon = start("[server]\nmax_clients = 20\n")
    found = crowd(daemon, daemon.endpoint, 50, is_hosted=False)
    assert not found.wrong, daemon.log.read_text()
    assert 15 < found.let_in <= 20
    assert "server.max_clients (20)" in daemon.log.read_text()
    assert daemon.stop() == 0


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one_within_reason(start: Start) -> None:
    for hard, expected in ((3000, 3000), (18_000, 16_384)):
        daemon = start(prefix=("prlimit", f"--nofile=1024:{hard}"), name=f"hard-{hard}")
        assert resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE) == (expected, hard)
        assert daemon.stop() == 0


def test_where_memory_ends_each_photograph_is_answered_or_told_to_come_back(start: Start) -> None:
    daemon = start()
    found = squeeze(daemon, photos((0.02, 2.0, 24.0)), margin_mb=20.0)
    assert not found.wrong
    assert found.outcomes["answer"] > 0
    assert found.outcomes["busy"] > 0, "there was no want of memory"
    assert "Traceback" not in daemon.log.read_text()
    assert daemon.stop() == 0


def test_strangers_who_connect_and_say_nothing_shut_nobody_out(start: Start, tmp_path: Path) -> None:
    keys = Keys.new(tmp_path)
    keys.allow("camera")
    tcp = f"tcp://127.0.0.1:{free_port()}"
    daemon = start(keys.config(tcp, "max_clients = 100\npeer_timeout_s = 3600\n"))
    with contextlib.ExitStack() as stack:
        for _ in range(150):
            stranger = stack.enter_context(socket.socket())
            stranger.setblocking(False)
            stranger.connect_ex(address_of(tcp))
        with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
            assert client.classify(drawn()).label
        with keys.client(tcp, "camera", timeout_ms=1e3 * LIMIT_S) as client:
            assert client.classify(drawn()).label
