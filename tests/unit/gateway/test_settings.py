"""Where the gateway may listen, and the secret that it reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jetsel.base.errors import ConfigError
from jetsel.gateway.settings import address, bears, check_reach, read_token

SECRET = "0123456789abcdef"


def test_addresses_are_read_in_both_versions_of_ip() -> None:
    assert address("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert address("[::1]:0") == ("::1", 0)
    assert address("localhost:80") == ("localhost", 80)


@pytest.mark.parametrize(
    "listen", ["8000", ":8000", "host:", "host:http", "host:65536", "host:²", "http://host:80", "::1:80"]
)
def test_what_is_no_address_is_refused_with_an_example(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"as in 127\.0\.0\.1:8000"):
        address(listen)


def test_beyond_loopback_somebody_must_ask_who_is_there() -> None:
    for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost"):
        check_reach(host, token=None, behind_proxy=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", "robot.local"):
        with pytest.raises(ConfigError, match="--token-file"):
            check_reach(host, token=None, behind_proxy=False)
        check_reach(host, token=SECRET, behind_proxy=False)
        check_reach(host, token=None, behind_proxy=True)


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


def test_a_header_bears_the_token_or_it_does_not() -> None:
    assert bears(f"Bearer {SECRET}", SECRET)
    assert not any(bears(header, SECRET) for header in (None, "", SECRET, f"Basic {SECRET}", f"Bearer {SECRET}x"))
