"""Edges that are asked without a daemon, and end with the test."""

from collections.abc import Callable, Iterator

import pytest

from jetsel.edge.messages import EdgeStart, Remote
from jetsel.edge.runner import EdgeClient
from jetsel.zoo import STARTER, scan
from tests.processes import ended
from tests.system.daemons import drawn, encoded

PICTURES = [encoded(drawn(seed)) for seed in range(6)]
(FAMILY,) = scan([STARTER]).families.values()
WNIDS = list(FAMILY.labels.wnids)
Open = Callable[..., EdgeClient]


@pytest.fixture
def open_edge() -> Iterator[Open]:
    def begin(*urls: str, name: str = "starter.l", token: str | None = None, refresh_s: float = 20.0) -> EdgeClient:
        remote = Remote(name, "encoded", "ranked", None, None, WNIDS, None, PICTURES[0], PICTURES[1])
        return EdgeClient(EdgeStart(list(urls), token, {"l": remote}, refresh_s))

    with ended(begin, EdgeClient.close) as begun:
        yield begun
