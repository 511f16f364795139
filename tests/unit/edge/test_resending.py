"""A request that an edge failed on goes to the next one, as long as its answer would be of use."""

from __future__ import annotations

import queue
import time

import pytest

from jetsel.base.errors import EngineDiedError, JetselError
from jetsel.edge.messages import AskResult, Remote
from jetsel.edge.runner import Edge, EdgeAnswer, Photograph, _Request
from jetsel.edge.server import EdgeServers, Server

REMOTES = {"l": Remote("l", "encoded", "ranked", None, None, ["n1"], None, b"", b"")}
FAILED = AskResult(7, None, "the link is cut", 100, 0, 5.0, None)


@pytest.mark.parametrize("left_s", [600.0, -0.001], ids=["in time", "too late"])
def test_what_failed_is_sent_to_the_next_edge_only_before_its_deadline(left_s: float) -> None:
    edge = object.__new__(Edge)  # without its child: what came from it is brought here
    edge._choice = EdgeServers([Server(f"http://edge-{number}", REMOTES) for number in range(2)])
    edge._under_way, edge._out = {}, queue.SimpleQueue()
    for server in edge._choice.servers:
        server.reason = None
    came: list[EdgeAnswer | JetselError] = []
    request = _Request("l", Photograph(b"image"), time.monotonic() + left_s, came.append, edge._choice.used)
    edge._answer(request, FAILED)
    if left_s > 0:
        assert (came, edge._out.qsize(), edge._under_way) == ([], 1, {7: request})
        assert request.server is edge._choice.servers[1]
        edge._answer(request, FAILED)
        assert edge._out.qsize() == 1, "no third edge is there"
    assert [type(one) for one in came] == [EngineDiedError]
    assert edge._out.qsize() == (1 if left_s > 0 else 0)
