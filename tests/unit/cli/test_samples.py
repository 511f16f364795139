"""The photographs that engines are compared on: a folder's, spread over it, and jetsel's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.errors import BadImageError
from jetsel.cli.models.build import PhotographFolder
from jetsel.image import Limits
from tests.system.daemons import drawn, encoded

LIMITS = Limits(10**7, 10**7)


def put(folder: Path, *names: str) -> None:
    for seed, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encoded(drawn(seed)))


def test_a_folder_is_read_at_any_depth_without_what_is_hidden_or_no_photograph(tmp_path: Path) -> None:
    put(tmp_path, "a/1.jpg", "a/b/2.jpg", ".hidden/3.jpg", "a/.4.jpg")
    (tmp_path / "notes.txt").write_text("no photograph")
    found = PhotographFolder(tmp_path, 10, LIMITS, 64)
    assert found.source == f"2 images of {tmp_path}, left out: 2 hidden, 1 not an image"
    for _ in range(2):
        assert [photograph.bgr.shape for photograph in found] == [(120, 160, 3)] * len(found)


def test_of_many_some_of_all_parts_are_taken(tmp_path: Path) -> None:
    put(tmp_path, *(f"{number}.jpg" for number in range(9)))
    found = PhotographFolder(tmp_path, 3, LIMITS, 64)
    assert found.source == f"3 of 9 images of {tmp_path}"
    pictures = [photograph.bgr.tolist() for photograph in found]
    assert pictures == [photograph.bgr.tolist() for photograph in PhotographFolder(tmp_path, 9, LIMITS, 64)][::3]


def test_a_folder_without_photographs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no photograph")
    with pytest.raises(BadImageError, match=r"no images there; name a folder .*; left out: 1 not an image"):
        PhotographFolder(tmp_path, 10, LIMITS, 64)


def test_a_file_is_read_no_further_than_it_is_accepted(tmp_path: Path) -> None:
    put(tmp_path, "1.jpg")
    with (tmp_path / "endless.jpg").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte that takes no room on the disk, and would take it in memory
    assert PhotographFolder(tmp_path, 10, LIMITS, 64).source == f"1 images of {tmp_path}, left out: 1 unreadable"
