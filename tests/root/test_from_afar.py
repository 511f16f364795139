"""The way of docs/remote-access.md to the daemon from another machine: a real sshd."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import JetselError
from tests.system.daemons import Daemon, drawn, serving
from tests.system.gateway.gateways import running
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "remote-access.md"
SOCKET = "/run/jetsel/jetsel.sock"


def blocks(language: str) -> list[str]:
    """The examples of ssh in this language."""
    section = PAGE.read_text(encoding="utf-8").split("\n## The gateway\n")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with serving(tmp_path) as daemon:
        yield daemon


def answers(endpoint: str) -> bool:
    with jetsel.Client(endpoint, timeout_ms=5000) as client:
        try:
            return client.status().state == "ready"
        except JetselError:
            return False


@pytest.mark.skipif(shutil.which("sshd") is None, reason="needs sshd: apt-get install openssh-server")
def test_ssh_forwards_a_socket_and_keeps_the_user(daemon: Daemon, tmp_path: Path) -> None:
    for name in ("host", "own"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    served, asked = tmp_path / "sshd_config", tmp_path / "ssh_config"
    served.write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/own.pub\n"
        "PermitRootLogin prohibit-password\nStrictModes no\nUsePAM no\nPidFile none\n"
    )
    asked.write_text(  # sshd at the other end of a pipe: no port is taken
        f"Host board\nProxyCommand {shutil.which('sshd')} -i -f {served}\nUser root\nIdentityFile {tmp_path}/own\n"
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    )
    forward, ask = blocks("sh")[:2]
    forward = forward.replace("ssh ", f"exec ssh -F {asked} ", 1).replace(SOCKET, str(daemon.path))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = {"HOME": str(tmp_path), "PATH": path}
    endpoint = f"ipc://{tmp_path}/board.sock"
    with running("sh", "-c", forward, folder=tmp_path, **shell):
        until(lambda: answers(endpoint))
        subprocess.run(["sh", "-c", ask], env={**os.environ, **shell}, check=True)
        with jetsel.Client(endpoint) as client:
            assert client.classify(drawn(0, 600, 800)).label
            assert client.reload().changed == [], "by root, as whom ssh logged in"
