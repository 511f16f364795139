"""What a client shows a daemon over tcp: both keys or neither, and no secret in what is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jetsel.client.credentials import credentials
from jetsel.errors import ConfigError
from jetsel.keys import KeyFolder
from jetsel.keys.folder import write_pair


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    found = KeyFolder(tmp_path / "keys", frozenset({os.geteuid()}))
    found.make_server(None)
    return found


def test_credentials_come_from_both_or_from_neither(tmp_path: Path, folder: KeyFolder) -> None:
    secret = tmp_path / "me.key_secret"
    pair = write_pair(tmp_path / "me.key", secret, "me", None)
    server = folder.server().public
    assert credentials(None, None, {}) is None
    expected = (pair.public.encode(), (pair.secret or "").encode(), server.encode())
    assert credentials(secret, folder.server_public, {}) == expected
    assert credentials(str(secret), server, {}) == expected
    assert credentials(None, None, {"JETSEL_KEY": str(secret), "JETSEL_SERVER_KEY": server}) == expected
    with pytest.raises(ConfigError, match="JETSEL_SERVER_KEY"):
        credentials(secret, None, {})
    with pytest.raises(ConfigError, match="JETSEL_KEY"):
        credentials(None, server, {})
    (tmp_path / "me.key").chmod(0o600)
    with pytest.raises(ConfigError, match=r"name the file that ends in \.key_secret"):
        credentials(tmp_path / "me.key", server, {})
    with pytest.raises(ConfigError, match=r"copy the daemon's server\.key there"):
        credentials(secret, tmp_path / "nowhere", {})


def test_no_secret_shows_in_what_is_printed(tmp_path: Path, folder: KeyFolder) -> None:
    secret = tmp_path / "me.key_secret"
    pair = write_pair(tmp_path / "me.key", secret, "me", None)
    assert pair.secret is not None
    assert pair.secret not in repr(pair)
    assert pair.secret not in repr(credentials(secret, folder.server_public, {}))
