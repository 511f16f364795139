"""Few open files, little memory, image bombs, peers that stall: who asks is answered, and the daemon goes on."""

import resource
import threading
from pathlib import Path

import pytest

import jetsel
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.waiting import until

OPEN_FILES = 120
PLACES = OPEN_FILES - 64  # what is kept for the daemon's own


@pytest.mark.slow
def test_with_more_clients_than_open_files_some_wait_until_others_leave(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start(prefix=("prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}"))
    early = connect(daemon)
    assert early.classify(jpeg)["type"] == "answer"
    crowd = [connect(daemon) for _ in range(OPEN_FILES)]
    for peer in crowd:
        peer.send({"type": "status"})
    until(lambda: "more wait" in daemon.log.read_text())
    assert early.classify(jpeg)["type"] == "answer"
    assert early.ask({"type": "reload"})["type"] == "reloaded", "files of its own can be opened"
    let_in = [peer for peer in crowd if peer.socket.poll(0)]
    waiting = [peer for peer in crowd if peer not in let_in]
    assert 0 < len(let_in) <= PLACES
    for peer in let_in:
        peer.socket.close()
    until(lambda: len(let_in) + sum(bool(peer.socket.poll(0)) for peer in waiting) > PLACES)  # others than at first
    assert early.classify(jpeg)["type"] == "answer"


@pytest.mark.slow
def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one_within_reason(start: Start) -> None:
    for hard, expected in ((3000, 3000), (18_000, 16_384)):
        daemon = start(prefix=("prlimit", f"--nofile=1024:{hard}"), name=f"hard-{hard}")
        assert resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE) == (expected, hard)


@pytest.mark.slow
def test_where_memory_ends_a_photograph_is_told_to_come_back_and_a_small_one_is_answered(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start()
    peer = connect(daemon)
    large = encoded(drawn(height=4000, width=6000), ".png")  # decoded at its whole size
    assert peer.classify(jpeg)["type"] == "answer"
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 20_000_000
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (most, most))
    reply = peer.classify(large)
    assert (reply["code"], reply["retry"]) == ("busy", True)
    assert peer.classify(jpeg)["type"] == "answer"
    assert "Traceback" not in daemon.log.read_text()
    with jetsel.Client(daemon.endpoint) as client:
        assert client.classify(drawn()).label


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
