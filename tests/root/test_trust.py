"""Who may use the socket and who may change the daemon, tried by real users."""

from __future__ import annotations

import grp
import json
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.root.users import ADMIN_GROUP, GUEST, OWNER, become, owners_daemon
from tests.system.daemons import Daemon

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
