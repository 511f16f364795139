"""What the options say of a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.cameras.mqtt import broker_of
from jetsel.base.errors import ConfigError


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
