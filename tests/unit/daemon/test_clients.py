"""How many requests one client may have under way, and that a client with none is forgotten."""

from __future__ import annotations

import os

import pytest

from jetsel.config import Server
from jetsel.daemon.clients import Clients, Load
from jetsel.errors import OverLimitError


def test_where_nothing_is_configured_no_client_fills_more_than_half_of_the_queue() -> None:
    clients, load = Clients(Server(queue_requests=10)), Load("uid 1", 0, 0)
    for _ in range(5):
        clients.check(load)
        clients.enter(load)
    with pytest.raises(OverLimitError, match=r"uid 1 has 5 .*limit is 5 "):
        clients.check(load)
    clients.check(Load("uid 2", 0, 0))


@pytest.mark.parametrize("who", ["uid 0", f"uid {os.getuid()}"])
def test_root_and_the_daemons_own_user_may_fill_the_queue_unless_a_limit_is_configured(who: str) -> None:
    load = Load(who, 10**9, 10**9)
    clients, limited = Clients(Server()), Clients(Server(client_requests=1))
    for _ in range(1000):
        clients.check(load)
        clients.enter(load)
    limited.enter(load)
    with pytest.raises(OverLimitError):
        limited.check(load)


def test_a_client_with_nothing_under_way_is_forgotten_at_once() -> None:
    clients = Clients(Server(client_requests=2))
    for number in range(1000):
        load = Load(f"uid {number}", 1, 1)
        clients.check(load)
        clients.enter(load)
        clients.leave(load)
    assert len(clients) == 0
