"""Who gets a place, and what the log is told."""

from __future__ import annotations

import pytest

from jetsel.config import Server
from jetsel.daemon.identity import LOOPBACK, Identity, of_process
from jetsel.daemon.zmtp.places import Places

ROOT, GUEST, OTHER = (of_process(uid, uid, 1) for uid in (0, 4_000_001, 4_000_002))
NOBODY = Identity(LOOPBACK)
MOST = 40  # of which an eighth is kept, and three quarters are tcp's at most


@pytest.fixture
def places() -> Places:
    return Places(Server(max_clients=MOST), lambda: 0)


def enter(places: Places, who: Identity, count: int) -> int:
    """Let so many in; return how many got a place."""
    return sum(places.are_free(is_tcp=who is NOBODY) and places.enter(who) for _ in range(count))


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
    assert enter(places, NOBODY, MOST) == MOST * 3 // 4
    assert enter(places, GUEST, MOST) == MOST - MOST * 3 // 4 - MOST // 8, "an eighth is kept for root"
    assert enter(places, ROOT, MOST) == MOST // 8


def test_what_others_have_taken_counts() -> None:
    assert enter(Places(Server(max_clients=MOST), lambda: MOST - 3), ROOT, MOST) == 3


def test_places_for_root_are_left_beside_what_others_have_taken() -> None:
    assert enter(Places(Server(max_clients=MOST), lambda: MOST * 3 // 4), GUEST, MOST) == MOST // 4 - MOST // 8


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
