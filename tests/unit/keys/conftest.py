"""A daemon's folder of keys, with its own pair."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jetsel.keys import KeyFolder


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    found = KeyFolder(tmp_path / "keys", frozenset({os.geteuid()}))
    found.make_server(None)
    return found
