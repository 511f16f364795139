"""Real users: who may use the socket and who may change the daemon, and the limits that hold for each."""

import grp
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import jetsel
from tests.system.daemons import Daemon, Peer, drawn, encoded, serving

OWNER, GUEST, ADMIN_GROUP = "daemon", "nobody", "adm"


def become(user: str, group: str, *more_groups: str) -> list[str]:
    """The command that runs another as this user, who may read every file: the interpreter may lie in root's home."""
    groups = ["--groups", ",".join(more_groups)] if more_groups else ["--clear-groups"]
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", "--reuid", user, "--regid", group, *groups, *reading]


def owners_daemon(place: Path, settings: str = "") -> AbstractContextManager[Daemon]:
    """A daemon of the user OWNER, whose socket the users' common group may use."""
    return serving(place, f'[server]\ngroup = "{ADMIN_GROUP}"\n{settings}', prefix=become(OWNER, OWNER, ADMIN_GROUP))


@pytest.fixture
def place() -> Iterator[Path]:
    """One that the daemon's user owns and others may enter; pytest's own is closed to them."""
    with TemporaryDirectory(prefix="jetsel-test-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101
        os.chown(folder, pwd.getpwnam(OWNER).pw_uid, pwd.getpwnam(OWNER).pw_gid)
        yield Path(folder)


ASK = """
import json, sys, zmq
context = zmq.Context()
peer = context.socket(zmq.DEALER)
peer.setsockopt(zmq.LINGER, 0)
peer.connect(sys.argv[1])
peer.send(json.dumps({"v": 1, "type": sys.argv[2], "id": "x"}).encode())
print(peer.recv().decode() if peer.poll(3000) else json.dumps({"type": "silence"}))
"""


@pytest.fixture
def daemon(place: Path) -> Iterator[Daemon]:
    """A daemon of another user than root, whose socket the users' common group may use."""
    with owners_daemon(place, f'admin_group = "{ADMIN_GROUP}"\n') as running:
        yield running


def ask(daemon: Daemon, kind: str, user: str, group: str, *more_groups: str) -> dict[str, object]:
    """Send one message as another user, in a process of theirs."""
    found = subprocess.run(
        [*become(user, group, *more_groups), sys.executable, "-c", ASK, daemon.endpoint, kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    reply: dict[str, object] = json.loads(found.stdout)
    return reply


def test_the_socket_is_its_users_and_its_groups_alone(daemon: Daemon) -> None:
    found = daemon.path.stat()
    assert found.st_mode & 0o777 == 0o660
    assert (found.st_uid, found.st_gid) == (pwd.getpwnam(OWNER).pw_uid, grp.getgrnam(ADMIN_GROUP).gr_gid)
    assert ask(daemon, "status", GUEST, "nogroup", ADMIN_GROUP)["type"] == "status"
    assert ask(daemon, "status", GUEST, "nogroup")["type"] == "silence"


def test_the_admin_group_may_reload_and_whoever_may_use_the_socket_may_not_therefore(daemon: Daemon) -> None:
    assert ask(daemon, "reload", GUEST, ADMIN_GROUP)["type"] == "reloaded"
    # The kernel tells a peer's own group, and the group file does not list this user.
    reply = ask(daemon, "reload", GUEST, "nogroup", ADMIN_GROUP)
    assert (reply["type"], reply.get("code"), reply.get("retry")) == ("failure", "not-allowed", False)


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
            assert flood.stdout.readline() == "here\n"
        for _ in range(20):
            with jetsel.Client(daemon.endpoint, timeout_ms=60_000) as client:
                assert client.status().state == "ready"
