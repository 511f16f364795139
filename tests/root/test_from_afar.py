"""The two ways to the daemon from another machine, as docs/deploy.md has them: a real sshd and a real stunnel."""

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
from jetsel.errors import JetselError
from tests.system.daemons import Daemon, drawn, free_port, launch, wait_until_ready
from tests.waiting import until

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy.md"
SOCKET = "/run/jetsel/jetsel.sock"


def blocks(language: str) -> list[str]:
    """What the section 'From afar' has in this language."""
    section = DEPLOY.read_text(encoding="utf-8").split("\n### From afar\n")[1].split("\n### ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    started = launch(tmp_path)
    wait_until_ready(started)
    yield started
    assert started.stop() == 0, started.log.read_text()


@contextmanager
def running(*command: object) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
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
    port = free_port()
    for name in ("host", "own"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    served = tmp_path / "sshd_config"
    served.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/own.pub\n"
        "PermitRootLogin prohibit-password\nStrictModes no\nUsePAM no\nPidFile none\n"
    )
    asked = tmp_path / "ssh_config"
    asked.write_text(
        f"Host board\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {tmp_path}/own\n"
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    )
    forward, ask = blocks("sh")[:2]
    forward = forward.replace("ssh ", f"exec ssh -F {asked} ", 1).replace(SOCKET, str(daemon.path))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    with running(shutil.which("sshd"), "-D", "-e", "-f", served), ExitStack() as stack:
        until(lambda: not subprocess.run(["ssh", "-F", str(asked), "board", "true"], check=False).returncode)
        through = stack.enter_context(subprocess.Popen(["sh", "-c", forward], env=shell, stdin=subprocess.PIPE))
        stack.callback(through.terminate)
        endpoint = f"ipc://{tmp_path}/board.sock"
        until(lambda: answers(endpoint))
        subprocess.run(["sh", "-c", ask], env=shell, check=True)
        with jetsel.Client(endpoint) as client:
            assert client.classify(drawn(0, 600, 800)).label
            assert client.reload().changed == [], "by root, as whom ssh logged in"


@pytest.mark.skipif(shutil.which("stunnel") is None, reason="needs stunnel: apt-get install stunnel4")
def test_stunnel_lets_in_who_has_an_allowed_certificate_and_nobody_else(daemon: Daemon, tmp_path: Path) -> None:
    outer, inner, strange = (free_port() for _ in range(3))
    (make,) = (block for block in blocks("sh") if block.startswith("openssl"))
    for name in ("board", "client", "stranger"):
        subprocess.run(["sh", "-c", make.replace("board", name)], cwd=tmp_path, check=True, capture_output=True)
    board, client = blocks("ini")

    def configured(name: str, text: str, inner: str) -> Path:
        for was, now in (
            ("setgid = jetsel\n", ""),
            ("/etc/stunnel", str(tmp_path)),
            (SOCKET, str(daemon.path)),
            ("0.0.0.0:5555", f"127.0.0.1:{outer}"),
            ("board:5555", f"127.0.0.1:{outer}"),
            ("127.0.0.1:5556", f"127.0.0.1:{inner}"),
        ):
            text = text.replace(was, now)
        path = tmp_path / f"{name}.conf"
        path.write_text(f"foreground = yes\npid =\n{text}")
        return path

    stranger = client.replace("client.crt", "stranger.crt").replace("client.key", "stranger.key")
    with (
        running("stunnel", configured("board", board, inner)),
        running("stunnel", configured("client", client, inner)),
        running("stunnel", configured("stranger", stranger, strange)),
    ):
        endpoint = f"tcp://127.0.0.1:{inner}"
        until(lambda: answers(endpoint))
        with jetsel.Client(endpoint) as let_in:
            assert let_in.classify(drawn(0, 600, 800)).label
        assert not answers(f"tcp://127.0.0.1:{strange}")
