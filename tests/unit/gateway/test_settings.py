"""Where the gateway may listen, the secret that it reads, and whose requests it refuses without one."""

import subprocess
from pathlib import Path

import pytest

from jetsel.base.errors import ConfigError
from jetsel.gateway.limits import cross_site_refusal
from jetsel.gateway.settings import parse_address, read_token, require_authentication

SECRET = "0123456789abcdef"


def test_addresses_are_read_in_both_versions_of_ip() -> None:
    assert parse_address("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert parse_address("[::1]:0") == ("::1", 0)
    assert parse_address("localhost:80") == ("localhost", 80)


@pytest.mark.parametrize(
    "listen", ["8000", ":8000", "host:", "host:http", "host:65536", "host:²", "http://host:80", "::1:80"]
)
def test_what_is_no_address_is_refused_with_an_example(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"as in 127\.0\.0\.1:8000"):
        parse_address(listen)


def test_beyond_loopback_somebody_must_ask_who_is_there() -> None:
    for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost"):
        require_authentication(host, token=None, behind_proxy=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", "robot.local"):
        with pytest.raises(ConfigError, match="--token-file"):
            require_authentication(host, token=None, behind_proxy=False)
        require_authentication(host, token=SECRET, behind_proxy=False)
        require_authentication(host, token=None, behind_proxy=True)


def test_a_secret_is_its_file_s_one_line_and_the_file_is_not_for_all(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o640)
    assert read_token(path) == SECRET
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod o-rwx"):
        read_token(path)


@pytest.mark.parametrize("content", [b"", b"short", b"two words that are long", b"\xff" * 40])
def test_what_is_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="--token-file"):
        read_token(path)


def test_the_repair_of_a_token_makes_a_file_that_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("short")
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        read_token(path)
    path.unlink()
    subprocess.run(["sh", "-c", str(caught.value).partition("more: ")[2]], check=True)
    assert len(read_token(path)) == 64


NAMES = frozenset({"jetson-3.example.org"})


def refused(method: str = "POST", names: frozenset[str] | None = NAMES, **headers: str) -> bool:
    sent = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return cross_site_refusal(method, sent, names) is not None


@pytest.mark.parametrize(
    ("host", "is_refused"),
    [
        ("127.0.0.1:8000 localhost:8000 LOCALHOST [::1]:8000 192.168.1.5:8000", False),
        ("board board:8000 board.local board.lan app.localhost:8000", False),
        ("jetson-3.example.org JETSON-3.example.org:8000 board.local.", False),
        ("attacker.example attacker.example:8000 127.0.0.1.attacker.example [::1", True),
        ("local.attacker.example 127.0.0.1@attacker.example", True),
    ],
)
def test_names_that_a_stranger_may_register_are_refused_as_hosts(host: str, is_refused: bool) -> None:
    for one in host.split():
        assert refused("GET", host=one) is is_refused, one
        assert not refused("GET", None, host=one), "a reverse proxy stands before it"
    assert not refused("GET"), "HTTP/1.0"


@pytest.mark.parametrize(
    ("site", "mode", "dest", "method", "is_refused"),
    [
        ("same-origin", "cors", "empty", "POST", False),
        ("none", "navigate", "document", "GET", False),
        ("cross-site", "navigate", "document", "GET", False),
        ("cross-site", "navigate", "iframe", "GET", True),
        ("cross-site", "navigate", "document", "POST", True),
        ("cross-site", "no-cors", "image", "POST", True),
        ("cross-site", "no-cors", "image", "GET", True),
        ("same-site", "cors", "empty", "POST", True),
    ],
)
def test_a_browser_that_names_the_site_is_believed(
    site: str, mode: str, dest: str, method: str, is_refused: bool
) -> None:
    told = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    found = refused(method, **told, sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest)
    assert found is is_refused


@pytest.mark.parametrize(
    ("origin", "kind", "more", "is_refused"),
    [
        ("http://localhost:8000", "text/plain", {}, False),
        ("http://attacker.example", "text/plain;charset=UTF-8", {}, True),
        ("null", "multipart/form-data; boundary=a", {}, True),
        ("http://localhost:3000", "", {}, True),
        ("https://board", "application/octet-stream", {}, False),
        ("https://board", "multipart/form-data; boundary=a", {"x_forwarded_host": "board"}, False),
    ],
)
def test_an_older_browser_is_known_by_its_origin(
    origin: str, kind: str, more: dict[str, str], is_refused: bool
) -> None:
    assert refused(host="localhost:8000", origin=origin, content_type=kind, **more) is is_refused


@pytest.mark.parametrize("kind", ["", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
def test_curl_and_other_clients_send_neither_header_and_are_served(kind: str) -> None:
    assert not refused(host="127.0.0.1:8000", content_type=kind, user_agent="curl/8.0")
