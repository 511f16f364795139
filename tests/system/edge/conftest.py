"""Edges that are asked without a daemon, and end with the test; what a device beside an edge is configured with."""

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest

import jetsel
from jetsel.base.errors import EngineDiedError, ModelUnavailableError
from jetsel.edge.messages import EdgeStart, Remote
from jetsel.edge.runner import EdgeClient
from jetsel.wire.status import EdgeStatus
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


THERE = ("s-night", "m-night", "m", "l", "xl")


def settings(url: str | list[str], *lines: str) -> str:
    more = "\n".join(lines)
    there = "\n".join(f'[edge.models.{name}]\nremote = "starter.{name}"' for name in THERE)
    return f'[models]\nonly = ["xs", "s"]\n[edge]\nurl = {json.dumps(url)}\n{more}\n{there}\n'


def answers(client: jetsel.Client) -> bool:
    """Whether the edge can be asked."""
    with contextlib.suppress(ModelUnavailableError, EngineDiedError):
        return client.classify(PICTURES[0], model="edge:xl").model == "edge:xl"
    return False


def edge_of(client: jetsel.Client) -> EdgeStatus:
    told = client.status().edge
    assert told is not None
    return told
