"""Who has how many connections, and which are ended, with real sockets."""

from __future__ import annotations

import os
import socket
import time

import pytest

from jetsel.daemon import connections, peers
from jetsel.daemon.connections import HALF_OPEN, Connections
from tests.system.raw import hung_up
from tests.unit.daemon.accepted import Clock, Rig, watched
from tests.unit.daemon.ports import LIMIT_S

PLACES = 200


def greet(accepted: socket.socket) -> None:
    """Send what shows that a handshake is through, and wait until it has been acknowledged."""
    accepted.sendall(bytes(10))
    give_up_s = time.monotonic() + LIMIT_S
    while (passed := peers.passed(accepted.fileno())) is None or passed.sent < 10:
        assert time.monotonic() < give_up_s


def test_the_kernel_tells_whose_a_connection_is(rig: Rig) -> None:
    (_, ipc), (_, tcp) = rig.connect("ipc"), rig.connect("tcp")
    peer = peers.who(ipc.fileno())
    assert peer is not None
    assert (peer.owner, peer.is_tcp, peer.is_trusted) == (f"uid {os.getuid()}", False, True)
    peer = peers.who(tcp.fileno())
    assert peer is not None
    assert (peer.owner, peer.is_tcp, peer.is_trusted) == ("127.0.0.1", True, False)


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
    found = Connections(3, True, clock)
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


def test_without_keys_everybody_over_tcp_is_the_same_and_nobody_has_a_share(rig: Rig) -> None:
    found = Connections(2, False)
    found.look(watched(*(rig.connect()[1] for _ in range(5))))
    assert found.surplus(PLACES) == ([], [])


def test_the_daemons_own_user_has_no_share(rig: Rig) -> None:
    found = Connections(2, True)
    found.look(watched(*(rig.connect("ipc")[1] for _ in range(5))))
    assert found.surplus(PLACES) == ([], [])


def test_tcp_never_takes_the_places_of_ipc(rig: Rig) -> None:
    found = Connections(None, False)
    accepted = [rig.connect()[1] for _ in range(15)]
    found.look(watched(*accepted))
    ipc, tcp = found.room(20)
    assert tcp == 0
    assert ipc > 0


def test_those_that_show_nothing_make_room_once_there_are_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HALF_OPEN", 4)
    clock = Clock()
    found = Connections(None, False, clock)
    pairs = [rig.connect() for _ in range(4)]
    ours, through = rig.connect()
    ours.sendall(bytes(100))  # more than a greeting
    give_up_s = time.monotonic() + LIMIT_S
    while (passed := peers.passed(through.fileno())) is None or passed.received < 100:
        assert time.monotonic() < give_up_s
    everybody = watched(through, *(accepted for _, accepted in pairs))
    found.look(everybody)
    assert found.room(PLACES)[1] == 0
    assert found.surplus(PLACES)[0] == [], "they have just come"
    clock.now_s += 2
    assert {c.descriptor for c in found.surplus(PLACES)[0]} == {accepted.fileno() for _, accepted in pairs}
    assert HALF_OPEN == 64, "only this test has fewer"


def test_the_heaviest_are_those_that_sent_most_since_they_delivered(rig: Rig) -> None:
    found = Connections(None, True)
    kinds = {"ipc": "ipc", "tcp": "tcp", "tcp too": "tcp", "idle": "ipc"}
    named = {name: rig.connect(kind) for name, kind in kinds.items()}
    everybody = watched(*(accepted for _, accepted in named.values()))
    found.look(everybody)
    for name, size in (("ipc", 2000), ("tcp", 1000), ("tcp too", 3000)):
        named[name][0].sendall(bytes(size))
    give_up_s = time.monotonic() + LIMIT_S
    while peers.unread(named["tcp too"][1].fileno()) < 3000 or peers.unread(named["tcp"][1].fileno()) < 1000:
        assert time.monotonic() < give_up_s
    found.weigh()
    names = {accepted.fileno(): name for name, (_, accepted) in named.items()}
    assert [names[c.descriptor] for c in found.heaviest()] == ["tcp too", "ipc", "tcp", "idle"]
    found.delivered(named["tcp too"][1].fileno())
    found.weigh()
    assert [names[c.descriptor] for c in found.heaviest()][:2] == ["ipc", "tcp"]
