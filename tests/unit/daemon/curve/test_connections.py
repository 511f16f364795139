"""Who has how many connections, and which are ended, with real sockets."""

from __future__ import annotations

import os
import socket
import time

import pytest

from jetsel.daemon.curve import connections, peers
from jetsel.daemon.curve.connections import Connections
from jetsel.daemon.curve.peers import Peer
from tests.system.raw import hung_up
from tests.unit.daemon.clock import Clock
from tests.unit.daemon.curve.accepted import Rig, watched
from tests.unit.daemon.ports import LIMIT_S
from tests.waiting import until

PLACES = 200


def greet(accepted: socket.socket) -> None:
    """Send what shows that a handshake is through, and wait until it has been acknowledged."""
    accepted.sendall(bytes(10))
    give_up_s = time.monotonic() + LIMIT_S
    while (passed := peers.passed(accepted.fileno())) is None or passed.sent < 10:
        assert time.monotonic() < give_up_s


def test_the_kernel_tells_whose_a_connection_is(rig: Rig) -> None:
    _, accepted = rig.connect(host="127.0.0.2")
    assert peers.who(accepted.fileno()) == Peer(os.fstat(accepted.fileno()).st_ino, "127.0.0.2")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peers.who(theirs.fileno()) is None, "a connection over ipc is not of these"


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_all_of_a_network_of_ipv6_is_one_peer(address: str, owner: str) -> None:
    assert peers.network(address) == owner


def test_what_is_no_connection_is_nobodys_and_leaves_nothing_open() -> None:
    read, write = os.pipe()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    assert peers.who(read) is None
    assert not peers.hang_up(read, os.fstat(read).st_ino)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    for end in (read, write):
        os.close(end)
    assert peers.who(read) is None


def test_a_descriptor_that_is_another_connections_by_now_is_left_alone(rig: Rig) -> None:
    ours, accepted = rig.connect()
    assert not peers.hang_up(accepted.fileno(), os.fstat(accepted.fileno()).st_ino + 1)
    accepted.sendall(b"x")
    assert ours.recv(1) == b"x"
    assert peers.hang_up(accepted.fileno(), os.fstat(accepted.fileno()).st_ino)
    assert hung_up(ours)


def test_an_address_has_no_more_than_its_share_and_another_is_left_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    found = Connections(3, clock)
    monkeypatch.setattr(connections, "CURVE_BYTES", 9)  # the next to come are let in once they were sent so much
    accepted = []
    for number in range(5):
        clock.now_s = number
        accepted.append(rig.connect(host="127.0.0.2")[1])
        greet(accepted[-1])
        found.look(watched(*accepted))
    silent = rig.connect(host="127.0.0.2")[1]
    other = rig.connect(host="127.0.0.3")[1]
    greet(other)
    found.look(watched(*accepted, other, silent))
    surplus, greedy = found.surplus(PLACES)
    assert greedy == ["127.0.0.2"]
    assert sorted(c.descriptor for c in surplus) == sorted(one.fileno() for one in accepted[3:]), "the newest"
    for connection in surplus:
        assert found.end(connection)
    assert found.surplus(PLACES) == ([], [])


def test_some_places_are_never_theirs(rig: Rig) -> None:
    found = Connections(None)
    accepted = [rig.connect()[1] for _ in range(10)]
    found.look(watched(*accepted))
    assert [found.room(places, 0) for places in (200, 20, 16, 12)] == [54, 5, 2, -1], "three quarters of all"
    assert [found.room(20, elsewhere) for elsewhere in (3, 5, 7, 8, 9)] == [5, 3, 1, 0, -1], "an eighth is kept"


def test_those_that_show_no_key_make_room_once_there_are_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HALF_OPEN", 4)
    monkeypatch.setattr(connections, "CURVE_BYTES", 9)
    clock = Clock()
    found = Connections(None, clock)
    pairs = [rig.connect() for _ in range(4)]
    _, through = rig.connect()
    greet(through)
    everybody = watched(through, *(accepted for _, accepted in pairs))
    found.look(everybody)
    assert found.room(PLACES, 0) == 0
    assert found.surplus(PLACES)[0] == [], "they have just come"
    clock.now_s += 2
    assert {c.descriptor for c in found.surplus(PLACES)[0]} == {accepted.fileno() for _, accepted in pairs}


def test_the_heaviest_are_those_that_sent_most_since_they_delivered(rig: Rig) -> None:
    found = Connections(None)
    named = {name: rig.connect() for name in ("some", "more", "most", "idle")}
    everybody = watched(*(accepted for _, accepted in named.values()))
    found.look(everybody)
    sizes = {"some": 1000, "more": 2000, "most": 3000}
    for name, size in sizes.items():
        ours, accepted = named[name]
        ours.sendall(bytes(size))
        until(lambda: (now := peers.passed(accepted.fileno())) is not None and now.received == size)  # noqa: B023
    found.weigh()
    names = {accepted.fileno(): name for name, (_, accepted) in named.items()}
    assert [names[c.descriptor] for c in found.heaviest()] == ["most", "more", "some", "idle"]
    found.delivered(named["most"][1].fileno())
    found.weigh()
    assert [names[c.descriptor] for c in found.heaviest()] == ["more", "some", "idle", "most"]
