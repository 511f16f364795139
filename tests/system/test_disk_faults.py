"""Files that cannot be written under a running daemon: it serves on."""

from __future__ import annotations

from tests.system.daemons import Connect, Start


def test_a_log_that_cannot_be_written_costs_nothing_but_the_log(start: Start, connect: Connect, jpeg: bytes) -> None:
    onto_a_full_disk = ["/bin/sh", "-c", 'exec "$0" "$@" 2>/dev/full']
    daemon = start("[log]\nrequests = true\n", prefix=onto_a_full_disk)
    peer = connect(daemon)
    assert {peer.classify(jpeg)["type"] for _ in range(20)} == {"answer"}
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert daemon.stop() == 0
