"""Keys between users and over a network of its own: what only root can set up."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.root.test_trust import OWNER, become
from tests.system.curve import Keys
from tests.system.daemons import launch, wait_until_ready
from tests.waiting import until

NAMESPACE, INSIDE, OUTSIDE = "jetsel-test", "192.0.2.66", "192.0.2.65"
PORT = 5577
ASK = """
import sys, jetsel
with jetsel.Client(sys.argv[1], key=sys.argv[2], server_key=sys.argv[3]) as client:
    print(client.status().state, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the daemon's user may enter; pytest's own is closed to it."""
    with TemporaryDirectory(prefix="jetsel-test-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        os.chown(path, pwd.getpwnam(OWNER).pw_uid, -1)
        yield path


@pytest.fixture
def keys(place: Path) -> Keys:
    return Keys.new(place)


def test_a_secret_of_a_stranger_is_refused_and_one_of_the_daemon_s_user_is_used(place: Path, keys: Keys) -> None:
    user = pwd.getpwnam(OWNER)
    secret = keys.folder.server_secret
    os.chown(secret, pwd.getpwnam("nobody").pw_uid, -1)
    refused = launch(place, keys.config("tcp://127.0.0.1:0"), prefix=become(OWNER, OWNER))
    assert refused.process.wait(60) == 2
    assert f"neither root nor the one that uses it: sudo chown {user.pw_uid} {secret}" in refused.log.read_text()
    os.chown(secret, user.pw_uid, -1)
    daemon = launch(place, keys.config("tcp://127.0.0.1:0"), prefix=become(OWNER, OWNER))
    wait_until_ready(daemon)
    assert daemon.stop() == 0


def test_a_new_server_key_is_given_to_whom_the_daemon_runs_as(place: Path) -> None:
    folder = place / "keys"
    command = [sys.executable, "-m", "jetsel", "keys", "new", "--server", "--folder", str(folder), "--owner", OWNER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, umask=0o077)
    assert done.returncode == 0, done.stderr
    secret = (folder / "server.key_secret").stat()
    assert (secret.st_uid, secret.st_mode & 0o777) == (pwd.getpwnam(OWNER).pw_uid, 0o600)
    assert (folder.stat().st_mode & 0o777, (folder / "server.key").stat().st_mode & 0o777) == (0o755, 0o644)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


@pytest.fixture
def network() -> Iterator[None]:
    """A machine of its own as far as the network goes: a namespace behind a pair of virtual interfaces."""
    try:
        ip("netns", "add", NAMESPACE)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    try:
        ip("link", "add", "jetsel-out", "type", "veth", "peer", "name", "jetsel-in", "netns", NAMESPACE)
        ip("addr", "add", f"{OUTSIDE}/30", "dev", "jetsel-out")
        ip("link", "set", "jetsel-out", "up")
        ip("-n", NAMESPACE, "addr", "add", f"{INSIDE}/30", "dev", "jetsel-in")
        ip("-n", NAMESPACE, "link", "set", "jetsel-in", "up")
        yield
    finally:
        ip("netns", "del", NAMESPACE)  # its interface goes with it, and the other end with that


def connections() -> int:
    """How many stand at the daemon's end, as the kernel tells (proc(5), /proc/net/tcp: 01 is ESTABLISHED)."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(local.endswith(f":{PORT:04X}") and state == "01" for _, local, _, state, *_ in map(str.split, lines))


def test_a_client_of_another_machine_is_let_in_refused_by_address_and_cut_off_when_it_vanishes(
    network: None, tmp_path: Path
) -> None:
    keys = Keys.new(tmp_path)
    keys.allow("camera")
    keys.pair("stranger")
    tcp = f"tcp://{OUTSIDE}:{PORT}"
    daemon = launch(tmp_path, keys.config(tcp, "peer_timeout_s = 1\n"))
    try:
        wait_until_ready(daemon)

        def asking(name: str) -> subprocess.Popen[str]:
            files = [str(keys.secret(name)), str(keys.folder.server_public)]
            command = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", ASK, tcp, *files]
            pipe = subprocess.PIPE
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

        with asking("stranger") as stranger:
            assert "does not know this key" in stranger.communicate(timeout=60)[1]
        assert f"{INSIDE} was refused: its key" in daemon.log.read_text()

        with asking("camera") as camera:
            assert camera.stdout is not None
            assert camera.stdout.readline() == "ready\n"
            assert connections() == 1
            ip("link", "set", "jetsel-out", "down")  # nothing arrives any more, the end of the connection included
            until(lambda: connections() == 0)
            camera.kill()
    finally:
        assert daemon.stop() == 0, daemon.log.read_text()
