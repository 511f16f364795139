"""Logins of cameras and brokers: whole, from files that not everybody may read, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.cameras.config import Camera
from jetsel.addons.cameras.mqtt import broker_of
from jetsel.addons.cameras.settings import with_login
from jetsel.base.errors import ConfigError

SOURCE = "rtsp://10.0.0.7/stream1"


def test_user_and_password_go_together(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("p@ss\n")
    password.chmod(0o600)
    assert with_login(Camera("door", SOURCE)) == SOURCE
    both = Camera("door", SOURCE, user="me", password_file=str(password))
    assert with_login(both) == "rtsp://me:p%40ss@10.0.0.7/stream1"
    for half in ({"user": "me"}, {"password_file": str(password)}):
        with pytest.raises(ConfigError, match="give both, or neither"):
            with_login(Camera("door", SOURCE, **half))


@pytest.mark.parametrize(
    ("text", "tls", "host", "port"),
    [
        ("homeassistant.local", False, "homeassistant.local", 1883),
        ("10.0.0.2:1884", False, "10.0.0.2", 1884),
        ("broker", True, "broker", 8883),
        ("[::1]:1884", True, "::1", 1884),
    ],
)
def test_a_broker_is_a_host_and_a_port(text: str, tls: bool, host: str, port: int) -> None:
    found = broker_of(text, None, None, tls)
    assert (found.host, found.port, found.tls) == (host, port, tls)


@pytest.mark.parametrize("text", ["", "host:", "host:port", "host:0", "host:70000", "::1", "mqtt://host"])
def test_what_is_no_broker_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"homeassistant\.local"):
        broker_of(text, None, None, False)


def test_a_password_is_read_from_a_file_that_not_everybody_may_read(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret with blanks \n")
    file.chmod(0o600)
    assert broker_of("host", "me", file, False).password == "secret with blanks "
    with pytest.raises(ConfigError, match="go together"):
        broker_of("host", "me", None, False)
