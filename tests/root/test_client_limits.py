"""Limits per client, tried by real users: one that floods is refused by its own limit, the other never notices."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import jetsel
from tests.root.users import ADMIN_GROUP, GUEST, become, owners_daemon
from tests.system.daemons import Peer, drawn, encoded

LIMITS = "queue_requests = 8\nclient_requests = 4\n"
POLITE = 60  # requests of the client that keeps to its limit

# Sends all that its socket takes until its input ends, then prints how often each outcome came.
FLOOD = """
import collections, json, select, sys, zmq
context = zmq.Context()
image = open(sys.argv[2], "rb").read()
peers = [context.socket(zmq.DEALER) for _ in range(4)]
for peer in peers:
    peer.setsockopt(zmq.LINGER, 0)
    peer.connect(sys.argv[1])
seen = collections.Counter()
print("begins", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for peer in peers:
        if peer.poll(0, zmq.POLLOUT):
            peer.send_multipart([b'{"v": 1, "id": "f", "type": "classify", "model": "xl"}', image])
        while peer.poll(0):
            reply = json.loads(peer.recv())
            seen[reply.get("code", reply["type"])] += 1
print(json.dumps(seen))
"""


FLOODS = 4
CONNECT = """
import socket, sys
print("here", flush=True)
while True:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(sys.argv[1])
"""


def test_a_user_who_floods_is_over_their_limit_and_never_makes_another_busy(place: Path) -> None:
    with owners_daemon(place, LIMITS) as daemon:
        image = place / "image.png"
        image.write_bytes(encoded(drawn(1, 700, 1000), ".png"))
        command = [*become(GUEST, "nogroup", ADMIN_GROUP), sys.executable, "-c", FLOOD, daemon.endpoint, str(image)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flooder:
            assert flooder.stdout is not None
            assert flooder.stdout.readline() == "begins\n"
            peer = Peer(daemon.endpoint)  # root's
            outcomes = [peer.classify(image.read_bytes()) for _ in range(POLITE)]
            out, _ = flooder.communicate("enough\n", timeout=60)
        peer.close()
        seen = json.loads(out)
        assert {reply["type"] for reply in outcomes} == {"answer"}, outcomes
        assert seen["over-limit"] > POLITE, "there was no flood"
        assert set(seen) == {"answer", "over-limit"}


def test_users_who_connect_without_end_keep_root_from_nothing(place: Path) -> None:
    with ExitStack() as stack:
        daemon = stack.enter_context(owners_daemon(place))
        command = [*become(GUEST, "nogroup", ADMIN_GROUP), sys.executable, "-c", CONNECT, str(daemon.path)]
        for _ in range(FLOODS):
            flood = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(flood.kill)
            assert flood.stdout is not None
            assert flood.stdout.readline() == "here\n"
        for _ in range(20):
            with jetsel.Client(daemon.endpoint, timeout_ms=60_000) as client:
                assert client.status().state == "ready"
