"""Which ids a peer can have come by honestly, and that a process's own begin where nobody expects it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import zmq

from jetsel.daemon.curve import routing
from jetsel.daemon.curve.routing import LONGEST_ID, PEERS_PER_S, SLACK, RoutingIds
from tests.unit.daemon.clock import Clock


def numbered(number: int) -> bytes:
    return b"\0" + (number % (1 << 32)).to_bytes(4, "big")


@pytest.mark.parametrize("first", [0, 7, 2**31, 2**32 - 3])
def test_ids_that_were_given_out_are_sound_past_the_largest_number_too(first: int) -> None:
    ids = RoutingIds(numbered(first), Clock())
    for number in (0, 1, 5, 3, SLACK, 2 * SLACK, SLACK + 7):
        assert ids.is_sound(numbered(first + number)), number


@pytest.mark.parametrize("first", [0, 2**31])
def test_an_id_from_before_the_first_or_far_ahead_was_guessed(first: int) -> None:
    ids = RoutingIds(numbered(first), Clock())
    assert not ids.is_sound(numbered(first - 1))
    assert not ids.is_sound(numbered(first + SLACK + 1))
    assert ids.is_sound(numbered(first + SLACK))


def test_as_many_may_have_come_as_time_has_passed() -> None:
    clock = Clock()
    ids = RoutingIds(numbered(100), clock)
    ahead = numbered(100 + SLACK + 2 * PEERS_PER_S)
    assert not ids.is_sound(ahead)
    clock.now_s += 2.0
    assert ids.is_sound(ahead)


@pytest.mark.parametrize(
    ("name", "is_sound"),
    [
        (b"camera-1", True),
        (b"i" * LONGEST_ID, True),
        (b"i" * (LONGEST_ID + 1), False),
        (b"\0", False),
        (b"\0\0\0\0", False),
        (b"\0\0\0\0\0\0", False),
    ],
)
def test_a_name_of_its_own_is_one_that_zmtp_allows(name: bytes, is_sound: bool) -> None:
    assert RoutingIds(numbered(0), Clock()).is_sound(name) is is_sound


def test_peers_that_name_nothing_get_the_ids_after_the_first() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        first = routing.first_of(context, router)
        ids = RoutingIds(first, Clock())
        router.bind("inproc://peers")
        for _ in range(3):
            with context.socket(zmq.DEALER) as peer:
                peer.connect("inproc://peers")
                peer.send(b"")
                name, _ = router.recv_multipart()
                assert name > first or name[1:] < first[1:]
                assert ids.is_sound(bytes(name))


def test_two_processes_begin_at_different_numbers() -> None:
    program = (
        "import zmq; from jetsel.daemon.curve import routing; routing.seed(); c = zmq.Context(); "
        "s = c.socket(zmq.ROUTER); print(routing.first_of(c, s).hex()); s.close()"
    )
    told = {subprocess.run([sys.executable, "-c", program], stdout=-1, check=True).stdout for _ in range(3)}
    assert len(told) == 3
