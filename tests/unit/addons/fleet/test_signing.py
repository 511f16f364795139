"""Keys: made once, never overwritten, and the private one for its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jetsel.addons.fleet.signing import make_key, public_key, read_key
from jetsel.base.errors import RepositoryError


def test_a_key_is_for_its_owner_and_is_not_overwritten(tmp_path: Path) -> None:
    public = make_key(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert read_key(tmp_path / "key.pub") == public == public_key(read_key(tmp_path / "key"))
    with pytest.raises(RepositoryError, match="overwritten"):
        make_key(tmp_path / "key")
    (tmp_path / "key").unlink()
    with pytest.raises(RepositoryError, match="overwritten"):
        make_key(tmp_path / "key")
    assert not (tmp_path / "key").exists()


def test_what_is_no_key_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    for name in ("key", "nothing"):
        with pytest.raises(RepositoryError, match="jetsel repo key"):
            read_key(tmp_path / name)
