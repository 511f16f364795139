"""Which folders models are read from, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.config import Models
from jetsel.base.errors import ConfigError
from jetsel.zoo import STARTER, model_folders
from jetsel.zoo.store import own_folder, planned_folders


def test_the_owners_own_folder_is_read_once_it_is_there(tmp_path: Path) -> None:
    environment = {"STATE_DIRECTORY": str(tmp_path)}
    assert own_folder(environment) == tmp_path / "models"
    assert model_folders(Models(), environment) == [STARTER]
    (tmp_path / "models").mkdir()
    assert model_folders(Models(), environment) == [STARTER, tmp_path / "models"]
    assert model_folders(Models(starter=False, paths=["/a", "/b"]), environment) == [
        Path("/a"),
        Path("/b"),
        tmp_path / "models",
    ]
    assert model_folders(Models(starter=False, paths=[str(tmp_path / "models")]), environment) == [tmp_path / "models"]


def test_a_link_to_a_version_that_is_gone_is_named_with_the_repair(tmp_path: Path) -> None:
    (tmp_path / "state-agent/installed").mkdir(parents=True)
    (tmp_path / "state-agent/installed/current").symlink_to("7")
    with pytest.raises(ConfigError, match="remove it"):
        planned_folders({"STATE_DIRECTORY": str(tmp_path / "state")})
