"""nginx and Caddy in front of a gateway, as docs/remote-access.md has them: TLS, passwords, limits and event streams.

Of the document's examples only paths, ports, certificates and the password's hash are changed; the servers listen on
unix sockets, which nobody else takes.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import jetsel
from tests.system.daemons import Daemon, encoded
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import Gateway, adapted, blocks, running
from tests.waiting import until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(
        shutil.which("nginx") is None or shutil.which("caddy") is None,
        reason="needs nginx and Caddy: apt-get install nginx caddy",
    ),
]

PASSWORD = "correct horse"
NGINX = """
daemon off;
user root;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{server}
}}
"""
CADDY = (
    "{{\n    admin off\n    auto_https disable_redirects\n    servers {{\n        protocols h1 h2\n    }}\n}}\n{site}"
)


@dataclass
class Proxy:
    """A server at `board`; its socket and the certificates are in the folder."""

    folder: Path

    def command(self, path: str, *options: str, user: str | None = f"ann:{PASSWORD}") -> list[str]:
        """curl, which trusts the authority of the test alone."""
        to = ["--unix-socket", str(self.folder / "socket"), "--cacert", str(self.folder / "authority.crt")]
        return ["curl", "-sS", *to, *(() if user is None else ("--user", user)), *options, f"https://board{path}"]

    def ask(self, path: str, *options: str, user: str | None = f"ann:{PASSWORD}") -> tuple[int, bytes]:
        """Return the status and the body; 0 where there is no reply."""
        body = self.folder / "reply"
        body.write_bytes(b"")
        command = self.command(path, "-o", str(body), "-w", "%{http_code}", *options, user=user)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return int(done.stdout), body.read_bytes()

    def first_piece(self, path: str) -> bytes:
        """Return what comes first of a reply that does not end."""
        with subprocess.Popen(self.command(path, "--no-buffer"), stdout=subprocess.PIPE) as asking:
            piece = asking.stdout.read1(1_000_000)  # type: ignore[attr-defined]
            asking.kill()
        return bytes(piece)


def openssl(folder: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)


def sign(folder: Path, authority: str, name: str) -> None:
    """Make NAME.crt and NAME.key, which the authority vouches for; and the authority, where there is none."""
    if not (folder / f"{authority}.crt").exists():
        new = f"-subj /CN={authority} -keyout {authority}.key -out {authority}.crt"
        openssl(folder, f"req -x509 -newkey rsa:2048 -nodes {new}")
    openssl(folder, f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
    (folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
    by = f"-CA {authority}.crt -CAkey {authority}.key -CAcreateserial -extfile names"
    openssl(folder, f"x509 -req -in {name}.csr {by} -out {name}.crt")


@contextmanager
def nginx(gateway: Gateway, folder: Path, **changes: str) -> Iterator[Proxy]:
    """changes: further ones to the document's example."""
    example, _ = blocks("remote-access.md", "Behind nginx", "nginx")
    (commands,) = blocks("remote-access.md", "Behind nginx", "sh")
    add = adapted(commands.splitlines()[0], {"sudo ": "", "/etc/nginx": str(folder), "passwd -6": "passwd -6 -stdin"})
    subprocess.run(["sh", "-c", add], input=PASSWORD, text=True, check=True, capture_output=True)
    sign(folder, "authority", "board")
    here = {"/etc/nginx": str(folder), "127.0.0.1:8000": f"127.0.0.1:{gateway.port}"}
    server = adapted(example, {"listen 443": f"listen unix:{folder}/socket", **changes, **here})
    (folder / "nginx.conf").write_text(NGINX.format(server=server))
    with running("nginx", "-p", folder, "-c", "nginx.conf", folder=folder):
        until((folder / "socket").exists)
        yield Proxy(folder)


@contextmanager
def caddy(gateway: Gateway, folder: Path) -> Iterator[Proxy]:
    (example,) = blocks("remote-access.md", "Behind Caddy", "caddy")
    sign(folder, "authority", "board")
    hashing = ["caddy", "hash-password", "--plaintext", PASSWORD]
    hashed = subprocess.run(hashing, capture_output=True, text=True, check=True).stdout.strip()
    here = {"/etc/caddy": str(folder), "127.0.0.1:8000": f"127.0.0.1:{gateway.port}", "HASH": hashed}
    site = adapted(example, {"board {\n": f"board {{\n    bind unix/{folder}/socket\n", **here})
    (folder / "Caddyfile").write_text(CADDY.format(site=site))
    with running("caddy", "run", "--config", "Caddyfile", folder=folder, HOME=str(folder)):
        until((folder / "socket").exists)
        yield Proxy(folder)


Server = Callable[[Gateway, Path], AbstractContextManager[Proxy]]
SERVERS = pytest.mark.parametrize("server", [nginx, caddy])


@SERVERS
def test_photographs_pass_with_a_password_over_tls_and_nothing_without(
    server: Server, shared_daemon: Daemon, gateway: Gateway, jpeg: bytes, tmp_path: Path
) -> None:
    noise = encoded(np.random.default_rng(0).integers(0, 255, (900, 1200, 3), np.uint8), ".png")
    assert len(noise) > 2_000_000, "more than nginx takes by itself"
    with server(gateway, tmp_path) as proxy, jetsel.Client(shared_daemon.endpoint) as client:
        for picture in (jpeg, noise):
            (tmp_path / "picture").write_bytes(picture)
            status, body = proxy.ask("/classify", "-F", f"image=@{tmp_path}/picture")
            assert (status, json.loads(body)["label"]) == (200, client.classify(picture).label)
        for user in (None, "ann:wrong", f"bob:{PASSWORD}"):
            assert proxy.ask("/v2/health/ready", user=user)[0] == 401
        assert proxy.ask("/v2/health/ready")[0] == 200
        sign(tmp_path, "stranger", "nobody")
        assert proxy.ask("/v2/health/ready", "--cacert", str(tmp_path / "stranger.crt"))[0] == 0, "another authority"


@SERVERS
def test_a_body_over_the_limit_is_refused(
    server: Server, shared_daemon: Daemon, open_gateway: Open, tmp_path: Path
) -> None:
    of_its_own = ("--max-body-mb", "1000") if server is nginx else ()  # Caddy has no limit, and hands on the gateway's
    gateway = open_gateway(shared_daemon.endpoint, *of_its_own)
    with (tmp_path / "large").open("wb") as large:
        large.truncate(70_000_000)
    with server(gateway, tmp_path) as proxy:
        kind = ("-H", "Content-Type: image/jpeg")
        assert proxy.ask("/classify", *kind, "--data-binary", f"@{tmp_path}/large")[0] == 413
        assert proxy.ask("/v2/health/ready")[0] == 200


@SERVERS
def test_events_come_one_by_one(server: Server, shared_daemon: Daemon, open_gateway: Open, tmp_path: Path) -> None:
    with server(open_gateway(shared_daemon.endpoint), tmp_path) as proxy:
        assert proxy.first_piece("/events").startswith(b"event: status\ndata: {")
    alone, folder = open_gateway(f"ipc://{tmp_path}/none.sock"), tmp_path / "alone"
    folder.mkdir()
    with server(alone, folder) as proxy:  # events of some 100 bytes, of which a buffer holds many
        assert proxy.first_piece("/events").count(b"event: away") in (1, 2, 3)


def test_nginx_lets_in_who_has_a_certificate_where_the_document_says_so(gateway: Gateway, tmp_path: Path) -> None:
    sign(tmp_path, "clients", "ann")
    sign(tmp_path, "stranger", "bob")
    example, certificates = blocks("remote-access.md", "Behind nginx", "nginx")
    passwords = "".join(line for line in example.splitlines(keepends=True) if "auth_basic" in line)
    with nginx(gateway, tmp_path, **{passwords: certificates}) as proxy:

        def as_(name: str) -> int:
            pair = ("--cert", str(tmp_path / f"{name}.crt"), "--key", str(tmp_path / f"{name}.key"))
            return proxy.ask("/v2/health/ready", *pair, user=None)[0]

        assert (as_("ann"), as_("bob"), proxy.ask("/v2/health/ready")[0]) == (200, 400, 400)
