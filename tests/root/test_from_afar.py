"""The ways of docs/remote-access.md to the daemon from another machine: a real sshd and a real stunnel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import JetselError
from tests.processes import port_of
from tests.system.daemons import Daemon, drawn, serving
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "remote-access.md"
SOCKET = "/run/jetsel/jetsel.sock"


def blocks(language: str) -> list[str]:
    """The examples of ssh and stunnel in this language."""
    section = PAGE.read_text(encoding="utf-8").split("\n## The gateway\n")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with serving(tmp_path) as daemon:
        yield daemon


@contextmanager
def running(*command: object, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    words = [*map(str, command)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()


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
    shell = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    endpoint = f"ipc://{tmp_path}/board.sock"
    with running("sh", "-c", forward, env=shell):
        until(lambda: answers(endpoint))
        subprocess.run(["sh", "-c", ask], env=shell, check=True)
        with jetsel.Client(endpoint) as client:
            assert client.classify(drawn(0, 600, 800)).label
            assert client.reload().changed == [], "by root, as whom ssh logged in"


@pytest.mark.skipif(shutil.which("stunnel") is None, reason="needs stunnel: apt-get install stunnel4")
def test_stunnel_lets_in_who_has_an_allowed_certificate_and_nobody_else(daemon: Daemon, tmp_path: Path) -> None:
    (make,) = (block for block in blocks("sh") if block.startswith("openssl"))
    for name in ("board", "client", "stranger"):
        subprocess.run(["sh", "-c", make.replace("board", name)], cwd=tmp_path, check=True, capture_output=True)
    board, client = blocks("ini")

    def configured(name: str, text: str, **settings: str) -> Path:
        changed = {"/etc/stunnel": str(tmp_path), "/home/me": str(tmp_path), SOCKET: str(daemon.path), **settings}
        for was, now in changed.items():
            text = text.replace(was, now)
        path = tmp_path / f"{name}.conf"
        path.write_text(f"foreground = yes\npid =\n{text}")
        return path

    with ExitStack() as stack:
        here = {"setgid = jetsel\n": "", "0.0.0.0:5555": "127.0.0.1:0"}
        serves = stack.enter_context(running("stunnel", configured("board", board, **here)))
        there = {"board:5555": f"127.0.0.1:{until(lambda: port_of(serves.pid))}"}
        strange = {**there, "client.crt": "stranger.crt", "client.key": "stranger.key", "board.sock": "stranger.sock"}
        stack.enter_context(running("stunnel", configured("client", client, **there)))
        stack.enter_context(running("stunnel", configured("stranger", client, **strange)))
        endpoint = f"ipc://{tmp_path}/board.sock"
        until(lambda: answers(endpoint))
        with jetsel.Client(endpoint) as let_in:
            assert let_in.classify(drawn(0, 600, 800)).label
        until((tmp_path / "stranger.sock").exists)
        assert not answers(f"ipc://{tmp_path}/stranger.sock")
