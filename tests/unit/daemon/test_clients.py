"""How fast one client may ask, on a clock of the test's, and that clients which are gone are forgotten."""

from __future__ import annotations

import os

import pytest

from jetsel.config import Server
from jetsel.daemon.clients import FEWEST_SWEPT, Clients, Load
from jetsel.errors import OverLimitError
from tests.unit.daemon.clock import Clock


def test_a_burst_of_one_second_is_let_through_and_then_the_rate() -> None:
    clock = Clock()
    clients = Clients(Server(client_rate_hz=4.0), clock)
    for _ in range(4):
        clients.pace("uid 1")
    with pytest.raises(OverLimitError, match=r"uid 1 .* 4 messages a second .*client_rate_hz.*again in 0\.250 s"):
        clients.pace("uid 1")
    clock.now_s += 0.25
    clients.pace("uid 1")
    with pytest.raises(OverLimitError):
        clients.pace("uid 1")


def test_what_is_refused_takes_no_token() -> None:
    clock = Clock()
    clients = Clients(Server(client_rate_hz=1.0), clock)
    clients.pace("uid 1")
    for _ in range(9):
        clock.now_s += 0.1
        with pytest.raises(OverLimitError):
            clients.pace("uid 1")
    clock.now_s += 0.11
    clients.pace("uid 1")


def test_a_rate_below_one_a_second_still_lets_one_through() -> None:
    clock = Clock()
    clients = Clients(Server(client_rate_hz=0.1), clock)
    clients.pace("uid 1")
    with pytest.raises(OverLimitError, match=r"again in 10\.000 s"):
        clients.pace("uid 1")
    clock.now_s += 10.0
    clients.pace("uid 1")


def test_one_client_s_rate_is_no_other_s() -> None:
    clients = Clients(Server(client_rate_hz=1.0), Clock())
    clients.pace("uid 1")
    clients.pace("uid 2")
    with pytest.raises(OverLimitError, match="uid 2"):
        clients.pace("uid 2")


@pytest.mark.parametrize("who", ["uid 1", "key camera", "loopback"])
def test_where_nothing_is_configured_no_client_fills_more_than_half_of_the_queue(who: str) -> None:
    clients = Clients(Server(queue_requests=10))
    load = Load(who, 0, 0)
    for _ in range(5):
        clients.pace(who)
        clients.check(load)
        clients.enter(load)
    with pytest.raises(OverLimitError, match=r"its limit is 5 of 32\.0 MB and 50\.0 megapixels"):
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


def test_a_client_with_nothing_under_way_is_forgotten_at_once_where_no_rate_holds() -> None:
    clients = Clients(Server(client_requests=2))
    for number in range(1000):
        load = Load(f"uid {number}", 1, 1)
        clients.check(load)
        clients.enter(load)
        clients.leave(load)
    assert len(clients) == 0


def test_clients_that_are_gone_are_forgotten_once_their_rate_allows_a_burst() -> None:
    clock = Clock()
    clients = Clients(Server(client_rate_hz=10.0, client_requests=2), clock)
    stays = Load("uid 0", 1, 1)
    clients.enter(stays)
    for number in range(1, 10_000):
        clock.now_s += 0.1
        clients.pace(f"uid {number}")
        assert len(clients) <= FEWEST_SWEPT
    clients.leave(stays)  # it was never forgotten


def test_a_client_that_still_pays_for_its_burst_is_not_forgotten() -> None:
    clock = Clock()
    clients = Clients(Server(client_rate_hz=1.0), clock)
    names = [f"uid {number}" for number in range(4 * FEWEST_SWEPT)]
    for name in names:
        clients.pace(name)
    for name in names:
        with pytest.raises(OverLimitError):
            clients.pace(name)
