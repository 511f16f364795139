"""Starting, stopping, reloading, and the socket's file."""

from __future__ import annotations

from tests.system.daemons import Connect, Start
from tests.waiting import until


def test_classify_while_the_models_load_is_told_to_retry(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(ready=False)
    until(daemon.path.exists)
    peer = connect(daemon)
    seen = []
    while not seen or seen[-1] != "answer":
        reply = peer.classify(jpeg)
        seen.append(reply["type"] if reply["type"] == "answer" else reply["code"])
        assert reply["type"] == "answer" or reply["retry"] is True
    assert seen[0] == "loading"
    assert set(seen) == {"loading", "answer"}


def test_a_wrong_configuration_stops_the_start_with_one_line(start: Start) -> None:
    daemon = start("[server]\nworkes = 2\n", ready=False)
    assert daemon.process.wait(60) == 2
    lines = daemon.log.read_text().splitlines()
    assert len(lines) == 1
    assert "server.workes" in lines[0]
    assert "example" in lines[0]
    assert not daemon.path.exists()
