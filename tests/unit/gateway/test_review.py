"""A decision moves an image to where it belongs; nothing is lost, overwritten, or reached outside the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.errors import BadRequestError, ConfigError
from jetsel.gateway.review import DISCARDED, Decision, Review


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("n01/cat-1.jpg", "n01/cat-2.jpg", "n02/dog-1.jpg"):
        path = tmp_path / "doubts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "doubts"


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_each_verdict_has_its_place_and_undo_brings_the_last_one_back(folder: Path) -> None:
    review, reviewed = Review(folder, None), folder.with_name("doubts-reviewed")
    assert (review.pending().image, review.pending().left, review.pending().label) == ("n01/cat-1.jpg", 3, "cat")
    review.decide(Decision("n01/cat-1.jpg", "right"))
    review.decide(Decision("n01/cat-2.jpg", "wrong", "n07"))
    review.decide(Decision("n02/dog-1.jpg", "discard"))
    assert files(reviewed) == {"n01/cat-1.jpg", "n07/cat-2.jpg", f"{DISCARDED}/n02/dog-1.jpg"}
    assert (files(folder), review.pending().left) == (set(), 0)
    assert review.undo() == "n02/dog-1.jpg"
    assert files(folder) == {"n02/dog-1.jpg"}
    assert review.pending().classes == ["n01", "n02", "n07"]
    with pytest.raises(BadRequestError, match="nothing to undo"):
        review.undo()


def test_a_name_that_is_taken_gets_a_number(folder: Path, tmp_path: Path) -> None:
    reviewed = tmp_path / "done"
    (reviewed / "n01").mkdir(parents=True)
    (reviewed / "n01" / "cat-1.jpg").write_bytes(b"another")
    Review(folder, reviewed).decide(Decision("n01/cat-1.jpg", "right"))
    assert (reviewed / "n01" / "cat-1.jpg").read_bytes() == b"another"
    assert (reviewed / "n01" / "cat-1-2.jpg").read_bytes() == b"n01/cat-1.jpg"


def test_what_is_not_in_the_folder_is_refused_and_nothing_moves(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (folder / "n01" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "n09").symlink_to(tmp_path)
    review = Review(folder, None)
    before = files(tmp_path)
    for image in ("../secret.jpg", "n01/../../secret.jpg", "n01/link.jpg", "n09/secret.jpg", "n01", "n01/x\0.jpg"):
        with pytest.raises(BadRequestError):
            review.decide(Decision(image, "right"))
        with pytest.raises(BadRequestError):
            review.read(image)
    for identifier in ("", "../n01", "a/b", ".hidden", None):
        with pytest.raises(BadRequestError, match="identifier"):
            review.decide(Decision("n01/cat-1.jpg", "wrong", identifier))
    assert files(tmp_path) == before
    assert review.pending().left == 3


def test_a_second_decision_about_an_image_is_refused(folder: Path) -> None:
    review = Review(folder, None)
    review.decide(Decision("n01/cat-1.jpg", "right"))
    with pytest.raises(BadRequestError, match="was decided already"):
        review.decide(Decision("n01/cat-1.jpg", "discard"))
    assert review.pending("n01/cat-1.jpg").image == "n01/cat-2.jpg"
    assert review.pending("n02/dog-1.jpg").image == "n01/cat-2.jpg", "what was put off comes again"


def test_folders_that_cannot_be_used_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        Review(tmp_path / "nowhere", None)
    with pytest.raises(ConfigError, match="name a folder beside"):
        Review(folder, folder / "done")
