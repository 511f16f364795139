"""Keys over tcp with real daemons and clients: who is let in, who is refused and told so, and who may change what."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import jetsel
from jetsel.errors import ConfigError, JetselError, NoReplyError, NotAllowedError
from tests.system.curve import CurvePeer, Guarded, Keys, guarded
from tests.system.daemons import Daemon, Peer, Start, drawn, free_port
from tests.system.raw import address_of, greeting, hung_up

TIMEOUT_S = 30.0  # of the clients: a refusal that came as slowly would be none


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys.new(tmp_path)


@pytest.fixture
def served(start: Start, keys: Keys) -> Guarded:
    keys.allow("camera")
    keys.allow("boss", is_admin=True)
    return guarded(start, keys)


def refused(client: jetsel.Client) -> str:
    """What a client is told, at once, whose daemon does not let it in."""
    began = time.monotonic()
    with client, pytest.raises(NotAllowedError) as caught:
        client.status()
    assert time.monotonic() - began < TIMEOUT_S / 2
    return str(caught.value)


def test_an_allowed_key_is_answered(served: Guarded) -> None:
    with served.keys.client(served.tcp, "camera") as client:
        assert client.classify(drawn()).label
        assert client.status().endpoints == [served.daemon.endpoint, served.tcp]


def test_the_server_key_may_be_given_as_its_letters_and_both_by_the_environment(
    served: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = served.keys.folder.server().public
    with jetsel.Client(served.tcp, key=served.keys.secret("camera"), server_key=letters) as client:
        assert client.status().state == "ready"
    monkeypatch.setenv("JETSEL_KEY", str(served.keys.secret("camera")))
    monkeypatch.setenv("JETSEL_SERVER_KEY", str(served.keys.folder.server_public))
    with jetsel.Client(served.tcp) as client:
        assert client.status().state == "ready"


def test_ipc_needs_no_key_where_tcp_does(served: Guarded) -> None:
    with jetsel.Client(served.daemon.endpoint) as client:
        assert client.classify(drawn()).label


def test_an_unknown_key_is_refused_and_told_what_to_do(served: Guarded) -> None:
    pair = served.keys.pair("stranger")
    assert "does not know this key: have its owner run jetsel keys allow" in refused(
        served.keys.client(served.tcp, "stranger")
    )
    (line,) = served.logged("was refused")
    assert f"127.0.0.1 was refused: its key {pair.public} is not allowed: jetsel keys allow" in line


def test_a_client_without_a_key_is_refused_and_told_what_to_do(served: Guarded) -> None:
    assert "needs a key" in refused(jetsel.Client(served.tcp))
    served.logged(" was refused: ")


def test_a_peer_that_speaks_without_keys_is_logged_with_its_address(served: Guarded) -> None:
    with socket.create_connection(address_of(served.tcp)) as peer:
        assert peer.recv(64)[:1] == b"\xff"  # a client of this machine's own ZeroMQ is gone before it is looked at
        time.sleep(0.5)
        peer.sendall(greeting(b"NULL"))
        assert hung_up(peer)
    (line,) = served.logged("127.0.0.1 was refused: ")
    assert "it has no key where one is needed" in line


def test_a_peer_that_speaks_something_else_is_logged_with_its_address(served: Guarded) -> None:
    with socket.create_connection(address_of(served.tcp)) as peer:
        time.sleep(0.5)
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert hung_up(peer)
    served.logged("127.0.0.1 was refused: ")


def test_a_client_with_another_servers_key_is_refused_and_told_what_to_do(served: Guarded) -> None:
    other = served.keys.pair("other").public
    said = refused(jetsel.Client(served.tcp, key=served.keys.secret("camera"), server_key=other))
    assert "hung up on the first words: server_key is not its server.key" in said
    served.logged(" was refused: ")


def test_a_client_with_keys_is_told_that_a_daemon_takes_none(start: Start, keys: Keys) -> None:
    tcp = f"tcp://127.0.0.1:{free_port()}"
    start(f'[server]\ntcp = "{tcp}"\n')
    keys.pair("camera")
    said = refused(keys.client(tcp, "camera"))
    assert "takes no keys" in said or "hung up on the first words" in said  # whichever side hears the other first


def test_one_address_is_logged_once_however_often_it_comes(served: Guarded) -> None:
    for _ in range(20):
        refused(jetsel.Client(served.tcp, retry=False))
    served.keys.pair("stranger")
    refused(served.keys.client(served.tcp, "stranger"))
    with served.keys.client(served.tcp, "camera") as client:
        assert client.status().state == "ready"
    addresses = [line.split(" was refused")[0].split()[-1] for line in served.logged("was refused")]
    assert addresses.count("127.0.0.1") == 1
    assert len(addresses) <= 2  # those that were gone before their address was known are logged once too


def test_half_a_pair_of_keys_is_told_before_anything_is_sent(served: Guarded) -> None:
    with pytest.raises(ConfigError, match="add server_key, --server-key or"):
        jetsel.Client(served.tcp, key=served.keys.secret("camera")).status()
    with pytest.raises(ConfigError, match="add key, --key or"):
        jetsel.Client(served.tcp, server_key=served.keys.folder.server_public).status()


def test_a_secret_key_that_others_may_read_is_not_used(served: Guarded) -> None:
    secret = served.keys.secret("camera")
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match=r"can be read by others \(mode 0644\): chmod go-rwx "):
        served.keys.client(served.tcp, "camera").status()


def test_only_an_admin_s_key_may_reload(served: Guarded) -> None:
    with served.keys.client(served.tcp, "camera") as camera, pytest.raises(NotAllowedError) as caught:
        camera.reload()
    assert "key camera may not change the daemon" in str(caught.value)
    with served.keys.client(served.tcp, "boss") as boss:
        assert boss.reload().changed == []


def test_a_revoked_key_is_refused_on_its_standing_connection_and_heard_again_once_allowed(served: Guarded) -> None:
    keys = served.keys
    peer = CurvePeer(served.tcp, keys_of(served, "camera"), keys.folder.server().public)
    try:
        assert peer.status()["type"] == "status"
        keys.folder.revoke("camera")
        assert peer.status()["type"] == "status", "nothing holds before a reload"
        assert served.reload() == ["key camera revoked"]
        for message in ({"type": "status"}, {"type": "reload"}, b"no JSON"):
            reply = peer.ask(message)
            assert (reply["code"], reply["retry"]) == ("not-allowed", False)
        assert peer.classify(b"no image")["code"] == "not-allowed"
        assert "does not know this key" in refused(keys.client(served.tcp, "camera"))
        keys.folder.allow("phone", keys_of(served, "camera").public, is_admin=False)
        assert served.reload() == ["key phone allowed"]
        assert peer.status()["type"] == "status"
    finally:
        peer.close()


def keys_of(served: Guarded, name: str) -> jetsel.keys.Certificate:
    from jetsel.keys.certificate import parse

    return parse(served.keys.secret(name).read_text(), name)


def test_a_key_that_became_an_admin_s_is_one_from_the_reload_on(served: Guarded) -> None:
    camera = keys_of(served, "camera")
    served.keys.folder.allow("camera", camera.public, is_admin=True, replace=True)
    assert served.reload() == ["key camera is admin, was camera, no admin"]
    with served.keys.client(served.tcp, "camera") as client:
        assert client.reload().changed == []


def test_a_revoked_key_is_out_even_where_the_rest_of_a_reload_is_refused(served: Guarded) -> None:
    served.keys.folder.revoke("camera")
    served.daemon.config.write_text("[server\n")
    with (
        jetsel.Client(served.daemon.endpoint) as client,
        pytest.raises(JetselError, match=r"configuration stays: .*; but of the keys, .*: key camera revoked"),
    ):
        client.reload()
    (line,) = served.logged("[event=reload-refused")
    assert "key camera revoked" in line
    refused(served.keys.client(served.tcp, "camera"))


def test_a_file_that_cannot_be_used_lets_nobody_in_and_keeps_nobody_out(served: Guarded) -> None:
    allowed = served.keys.folder.path / "allowed"
    (allowed / "junk.key").write_text("no key\n")
    served.keys.folder.allow("writable", served.keys.pair("writable").public, is_admin=True).chmod(0o666)
    assert served.reload() == []
    (junk,) = served.logged("junk.key")
    assert "a key was left out" in junk
    refused(served.keys.client(served.tcp, "writable"))
    with served.keys.client(served.tcp, "camera") as client:
        assert client.status().state == "ready"


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no server key": (lambda f: (f / "server.key_secret").unlink(), "jetsel keys new --server"),
    "no folder": (lambda f: f.rename(f.with_name("elsewhere")), "jetsel keys new --server"),
    "readable secret": (lambda f: (f / "server.key_secret").chmod(0o640), "chmod go-rwx"),
    "writable folder": (lambda f: f.chmod(0o775), "chmod go-w"),
    "writable folder of clients": (lambda f: (f / "allowed").chmod(0o777), "chmod go-w"),
    "a public key as the secret": (
        lambda f: (f / "server.key_secret").write_text((f / "server.key").read_text()),
        "holds no secret key",
    ),
    "a link": (
        lambda f: (f / "server.key_secret").rename(f / "x") and (f / "server.key_secret").symlink_to("x"),
        "cannot be read",
    ),
    "a pipe": (lambda f: ((f / "server.key_secret").unlink(), os.mkfifo(f / "server.key_secret", 0o600)), "is no file"),
    "a giant": (lambda f: (f / "server.key_secret").write_bytes(b"#" * 5000), "more than the 4096 bytes"),
    "two halves": (
        lambda f: (f / "server.key_secret").write_text(
            (f / "server.key_secret").read_text().replace('secret-key = "', 'secret-key = "0', 1).replace('0"\n', '"\n')
        ),
        "jetsel keys new",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_daemon_whose_keys_are_not_safe_does_not_start_and_names_the_repair(
    start: Start, keys: Keys, fault: str
) -> None:
    spoil, said = FAULTS[fault]
    keys.allow("camera")
    spoil(keys.folder.path)
    daemon = start(keys.config(f"tcp://127.0.0.1:{free_port()}"), ready=False)
    assert daemon.process.wait(30) == 2
    log = daemon.log.read_text()
    assert "server.keys: " in log
    assert said in log


def test_a_reload_with_keys_that_are_not_safe_changes_nothing(served: Guarded) -> None:
    served.keys.folder.revoke("camera")
    (served.keys.folder.path / "allowed").chmod(0o777)
    with (
        jetsel.Client(served.daemon.endpoint) as client,
        pytest.raises(JetselError, match=r"server\.keys: .*chmod go-w"),
    ):
        client.reload()
    (line,) = served.logged("[event=reload-refused")
    assert "chmod go-w" in line
    with served.keys.client(served.tcp, "camera") as client:
        assert client.status().state == "ready"


def test_beyond_loopback_a_daemon_without_keys_does_not_start(start: Start) -> None:
    daemon = start('[server]\ntcp = "tcp://0.0.0.0:5555"\n', ready=False)
    assert daemon.process.wait(30) == 2
    assert "beyond loopback" in daemon.log.read_text()


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))  # sends nothing: it asks the kernel which address it would send from
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def test_beyond_loopback_a_key_is_needed_and_the_refused_address_is_logged(start: Start, keys: Keys) -> None:
    address = own_address()
    keys.allow("camera")
    served = guarded(start, keys, host="0.0.0.0")
    tcp = served.tcp.replace("0.0.0.0", address)
    with keys.client(tcp, "camera") as client:
        assert client.classify(drawn()).label
    keys.pair("stranger")
    refused(keys.client(tcp, "stranger"))
    served.logged(f"{address} was refused")
    refused(jetsel.Client(tcp))


def test_over_ipv6_it_is_the_same(start: Start, keys: Keys) -> None:
    keys.allow("camera")
    served = guarded(start, keys, host="[::1]")
    with keys.client(served.tcp, "camera") as client:
        assert client.classify(drawn()).label
    keys.pair("stranger")
    refused(keys.client(served.tcp, "stranger"))
    served.logged("::1 was refused")


def test_without_keys_loopback_stays_as_it_is_and_changes_nothing(shared_daemon: Daemon) -> None:
    with jetsel.Client(shared_daemon.endpoint) as client:
        tcp = client.status().endpoints[1]
    peer = Peer(tcp)
    try:
        assert peer.status()["type"] == "status"
        assert peer.ask({"type": "reload"})["code"] == "not-allowed"
    finally:
        peer.close()


def jetsel_command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jetsel", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_commands_from_the_first_key_to_its_revocation(start: Start, tmp_path: Path) -> None:
    folder, mine = tmp_path / "keys", tmp_path / "mine"
    tcp = f"tcp://127.0.0.1:{free_port()}"
    made = jetsel_command("keys", "new", "--server", "--folder", folder)
    assert made.returncode == 0, made.stderr
    daemon = start(f'[server]\ntcp = "{tcp}"\nkeys = "{folder}"\n')
    own = ("--key", mine / "laptop.key_secret", "--server-key", folder / "server.key")
    assert jetsel_command("keys", "new", "laptop", "--folder", mine).returncode == 0
    assert (mine / "laptop.key_secret").stat().st_mode & 0o777 == 0o600
    again = jetsel_command("keys", "new", "laptop", "--folder", mine)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)

    asked = jetsel_command("status", "--json", "--endpoint", tcp, *own)
    assert (asked.returncode, "does not know this key" in asked.stderr) == (1, True)
    config = ("--config", daemon.config)
    allowed = jetsel_command("keys", "allow", mine / "laptop.key", *config)
    assert (allowed.returncode, allowed.stdout) == (0, "laptop is allowed\nthe daemon has read its keys again\n")
    assert '"name":"laptop","admin":false' in jetsel_command("keys", "list", "--json", *config).stdout
    assert jetsel_command("status", "--endpoint", tcp, *own).returncode == 0
    over_tcp = jetsel_command("reload", "--endpoint", tcp, *own)
    assert (over_tcp.returncode, "--admin" in over_tcp.stderr) == (1, True)
    twice = jetsel_command("keys", "allow", mine / "laptop.key", "--name", "other", *config)
    assert (twice.returncode, "is allowed already, as laptop" in twice.stderr) == (2, True)
    admin = jetsel_command("keys", "allow", mine / "laptop.key", "--admin", "--replace", *config)
    assert admin.returncode == 0, admin.stderr
    assert jetsel_command("reload", "--endpoint", tcp, *own).returncode == 0

    revoked = jetsel_command("keys", "revoke", "laptop", *config)
    assert revoked.returncode == 0, revoked.stderr
    assert jetsel_command("status", "--endpoint", tcp, *own).returncode == 1
    assert jetsel_command("keys", "revoke", "laptop", *config).returncode == 2
    assert daemon.stop() == 0
    later = jetsel_command("keys", "allow", mine / "laptop.key", *config)
    assert (later.returncode, "no daemon listens" in later.stdout) == (0, True)


def test_a_new_server_key_holds_from_the_next_start_on(start: Start, keys: Keys, tmp_path: Path) -> None:
    keys.allow("camera")
    served = guarded(start, keys)
    copy = tmp_path / "server.key"
    copy.write_bytes(keys.folder.server_public.read_bytes())
    keys.folder.make_server(None, replace=True)
    served.reload()
    served.logged("another server key takes effect at the next start")
    with jetsel.Client(served.tcp, key=keys.secret("camera"), server_key=copy) as client:
        assert client.status().state == "ready"
    assert served.daemon.stop() == 0
    again = start(served.daemon.config.read_text().replace(f'endpoint = "{served.daemon.endpoint}"\n', ""))
    with keys.client(served.tcp, "camera") as client:
        assert client.status().pid == again.process.pid
    refused(jetsel.Client(served.tcp, key=keys.secret("camera"), server_key=copy))


def test_a_restart_is_survived_by_a_client_with_a_key(start: Start, keys: Keys) -> None:
    keys.allow("camera")
    served = guarded(start, keys)
    with keys.client(served.tcp, "camera") as client:
        client.status()
        assert served.daemon.stop() == 0
        with pytest.raises(JetselError) as caught:
            client.status(timeout_ms=1000)
        assert not isinstance(caught.value, NoReplyError), caught.value
        start(served.daemon.config.read_text().replace(f'endpoint = "{served.daemon.endpoint}"\n', ""))
        assert client.classify(drawn()).label
