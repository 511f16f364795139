"""Who gets a place, and what the log is told."""

from __future__ import annotations

import pytest

from jetsel.config import Server
from jetsel.daemon.identity import LOOPBACK
from jetsel.daemon.zmtp.places import FEWEST_STRANGERS, STRANGER, STRANGERS, Places

ROOT, GUEST, OTHER = (f"uid {uid}" for uid in (0, 4_000_001, 4_000_002))
CAMERA, PHONE = "key camera", "key phone"
MOST = 40  # of which an eighth is kept, and three quarters are tcp's at most


@pytest.fixture
def places() -> Places:
    return Places(Server(max_clients=MOST))


def enter(places: Places, who: str, count: int) -> int:
    """Let so many in; return how many got a place."""
    return sum(places.are_free(is_tcp=not who.startswith("uid")) and places.enter(who) for _ in range(count))


def show(places: Places, who: str, count: int) -> int:
    """Let so many in over tcp, who show this key; return how many got its place."""
    shown = 0
    for _ in range(count):
        if enter(places, STRANGER, 1):
            if places.settle(who):
                shown += 1
            else:
                places.leave(STRANGER)
    return shown


def test_one_user_has_half_and_all_of_them_leave_some_for_root(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    assert enter(places, GUEST, MOST) == MOST // 2
    assert enter(places, OTHER, MOST) == MOST - MOST // 2 - MOST // 8
    assert enter(places, ROOT, MOST) == MOST // 8
    assert not places.are_free(is_tcp=False)
    assert [r.event for r in caplog.records] == ["client-has-its-share"]  # type: ignore[attr-defined]
    places.leave(GUEST)
    assert enter(places, ROOT, 5) == 1


def test_root_may_have_all(places: Places) -> None:
    assert enter(places, ROOT, 2 * MOST) == MOST


def test_tcp_has_three_quarters_and_nobody_s_share(places: Places) -> None:
    assert enter(places, LOOPBACK, MOST) == MOST * 3 // 4
    assert enter(places, GUEST, MOST) == MOST - MOST * 3 // 4 - MOST // 8, "an eighth is kept for root"
    assert enter(places, ROOT, MOST) == MOST // 8


def test_over_tcp_nobody_gets_the_places_that_are_kept_for_root(places: Places) -> None:
    assert enter(places, GUEST, MOST) == MOST // 2
    assert enter(places, LOOPBACK, MOST) == MOST - MOST // 2 - MOST // 8
    assert enter(places, ROOT, MOST) == MOST // 8


def test_one_key_has_half_and_the_others_of_tcp_the_rest_of_its_share(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    share = MOST * 3 // 4 // 2
    assert show(places, CAMERA, MOST) == share
    assert show(places, PHONE, MOST) == MOST * 3 // 4 - share
    (told,) = caplog.messages
    assert told.startswith(f"{CAMERA} has all the connections that one client may have, 15")
    places.leave(PHONE)
    assert show(places, PHONE, 5) == 1
    assert enter(places, GUEST, MOST) == MOST - MOST * 3 // 4 - MOST // 8


@pytest.mark.parametrize(("most", "strangers"), [(1000, STRANGERS), (200, 75), (MOST, FEWEST_STRANGERS), (8, 6)])
def test_those_who_have_shown_no_key_take_no_more_than_their_places(most: int, strangers: int) -> None:
    places = Places(Server(max_clients=most))
    assert enter(places, STRANGER, most) == strangers
    assert places.are_free(is_tcp=True), "for one more, who takes the place of one of these"
    assert enter(places, GUEST, 1) == 1
    assert places.settle(CAMERA)
    assert enter(places, STRANGER, 5) == (0 if most == 8 else 1), "tcp is full there"


def test_where_all_of_tcp_have_shown_a_key_the_next_wait(places: Places) -> None:
    for who in (CAMERA, PHONE):
        assert show(places, who, MOST) == MOST * 3 // 4 // 2
    assert not places.are_free(is_tcp=True)


def test_a_place_may_become_another_s(places: Places) -> None:
    assert show(places, CAMERA, 2) == 2
    places.move(CAMERA, PHONE)
    places.move(CAMERA, PHONE)
    assert places.are_over(PHONE, 1)
    assert not places.are_over(PHONE, 2)
    assert show(places, CAMERA, MOST) == MOST * 3 // 4 // 2, "none of them is its own"
    for _ in range(2):
        places.leave(PHONE)
    assert places.taken == MOST * 3 // 4 // 2


def test_the_log_tells_once_that_somebody_waits_and_once_that_nobody_does(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    enter(places, ROOT, MOST)
    for _ in range(3):
        places.somebody_waits()
    places.leave(ROOT)
    for _ in range(3):
        places.nobody_waits()
    assert [r.event for r in caplog.records] == ["clients-wait", "clients-let-in"]  # type: ignore[attr-defined]
