"""Few open files and little memory: short forms of tests/faults/descriptors.py and memory.py."""

from __future__ import annotations

import resource

import pytest

from tests.faults.descriptors import HOSTED, crowd
from tests.faults.memory import photos, squeeze
from tests.system.daemons import Start

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
def test_with_more_clients_than_open_files_some_wait_and_nobody_is_hurt(start: Start) -> None:
    daemon = start(HOSTED, prefix=("prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}"))
    found = crowd(daemon, daemon.endpoint, CLIENTS, is_hosted=True)
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
    assert "server.max_clients" in daemon.log.read_text()
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
