"""A camera's login goes into its URL whole, or the camera is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.cameras.config import Camera
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
