"""What `jetsel classify` asks about: files, and all photographs of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from jetsel.cli.classify import _files
from jetsel.cli.options import served_models


def test_of_a_folder_all_photographs_are_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.JPG", "a.png", "deep/c.webp", "notes.txt", "._b.JPG"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    single = tmp_path / "notes.txt"
    assert _files([single, tmp_path]) == [single, *(tmp_path / name for name in ("a.png", "b.JPG", "deep/c.webp"))]
    assert capsys.readouterr().err.splitlines()[::2] == ["left out: 1 hidden", "left out: 1 not an image"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(typer.BadParameter, match=r"empty: holds no JPEG, PNG or WebP file$"):
        _files([tmp_path / "empty"])
    (tmp_path / "empty" / "@eaDir" / "0.jpg").mkdir(parents=True)
    with pytest.raises(typer.BadParameter, match=r"holds no JPEG, .*; left out: 1 made by a system"):
        _files([tmp_path / "empty"])


def test_without_a_daemon_there_is_nothing_to_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JETSEL_ENDPOINT", f"ipc://{tmp_path}/none.sock")
    assert served_models("x") == []
