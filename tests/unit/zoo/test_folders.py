"""Which folders models are read from, in which order."""

from __future__ import annotations

from pathlib import Path

from jetsel.config import Models
from jetsel.zoo import STARTER, model_folders
from jetsel.zoo.folders import own_folder


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
