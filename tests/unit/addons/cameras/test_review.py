"""A decision moves an image to where it belongs; nothing is lost, overwritten, or reached outside the folder."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jetsel.addons.cameras.review import DISCARDED, MOST_BYTES, Review, ReviewDecision
from jetsel.base.errors import BadRequestError, ConfigError, ImageTooLargeError


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
    review.decide(ReviewDecision("n01/cat-1.jpg", "right"))
    review.decide(ReviewDecision("n01/cat-2.jpg", "wrong", "n07"))
    review.decide(ReviewDecision("n02/dog-1.jpg", "discard"))
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
    Review(folder, reviewed).decide(ReviewDecision("n01/cat-1.jpg", "right"))
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
            review.decide(ReviewDecision(image, "right"))
        with pytest.raises(BadRequestError):
            review.read(image)
    for identifier in ("", " ", "../n01", "a/b", ".hidden", "@eaDir", "a\nb", "x" * 256, None):
        with pytest.raises(BadRequestError, match="identifier"):
            review.decide(ReviewDecision("n01/cat-1.jpg", "wrong", identifier))
    assert files(tmp_path) == before
    assert review.pending().left == 3


def test_a_second_decision_about_an_image_is_refused(folder: Path) -> None:
    review = Review(folder, None)
    review.decide(ReviewDecision("n01/cat-1.jpg", "right"))
    with pytest.raises(BadRequestError, match="was decided already"):
        review.decide(ReviewDecision("n01/cat-1.jpg", "discard"))
    assert review.pending("n01/cat-1.jpg").image == "n01/cat-2.jpg"
    assert review.pending("n02/dog-1.jpg").image == "n01/cat-2.jpg", "what was put off comes again"


def test_folders_that_cannot_be_used_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        Review(tmp_path / "nowhere", None)
    with pytest.raises(ConfigError, match="name a folder beside"):
        Review(folder, folder / "done")


def test_only_what_is_listed_is_read_or_moved(folder: Path, tmp_path: Path) -> None:
    """A secret, what a system makes and what is no image are not listed; a name that is not UTF-8 stops nothing."""
    hidden = (
        ".ssh/id_rsa",
        ".ssh/a.jpg",
        "n01/.env",
        "n01/notes.txt",
        "n01/._cat-1.jpg",
        "@eaDir/a.jpg",
        "n01/x.jpg/y",
    )
    for name in hidden:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"secret")
    Path(os.fsdecode(os.fsencode(folder / "n01") + b"/\xff.jpg")).write_bytes(b"")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).mkdir()
    (folder / "n01" / "Cat-3.JFIF").write_bytes(b"")
    review, before = Review(folder, None), files(tmp_path)
    assert review.pending().classes == ["n01", "n02"]
    assert msgspec.json.decode(msgspec.json.encode(review.pending("n01/cat-2.jpg")))["image"] == "n02/dog-1.jpg"
    assert review.pending().left == 4
    for image in (*hidden, "n01/x.jpg", "n01/\udcff.jpg", "caf\udce9/a.jpg"):
        with pytest.raises(BadRequestError):
            review.read(image)
        with pytest.raises(BadRequestError):
            review.decide(ReviewDecision(image, "discard"))
    assert files(tmp_path) == before


def test_a_file_that_no_image_is_as_large_as_is_not_read(folder: Path) -> None:
    os.truncate(folder / "n01" / "cat-1.jpg", MOST_BYTES + 1)
    review = Review(folder, None)
    with pytest.raises(ImageTooLargeError):
        review.read("n01/cat-1.jpg")
    review.decide(ReviewDecision("n01/cat-1.jpg", "discard"))


@pytest.mark.parametrize("link", ["n01", DISCARDED, f"{DISCARDED}/n01"])
def test_no_link_in_the_reviewed_folder_is_followed(folder: Path, tmp_path: Path, link: str) -> None:
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "doubts-reviewed" / link
    elsewhere.mkdir()
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    with pytest.raises(BadRequestError, match="links are not followed"):
        Review(folder, None).decide(ReviewDecision("n01/cat-1.jpg", "right" if link == "n01" else "discard"))
    assert files(elsewhere) == set()
    assert "n01/cat-1.jpg" in files(folder)


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the tests'."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs /dev/shm on a file system of its own")
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


INTERRUPTED = """
import resource, signal, sys
from pathlib import Path
from jetsel.addons.cameras.review import Review, ReviewDecision
signal.signal(signal.SIGXFSZ, getattr(signal, sys.argv[3]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
Review(Path(sys.argv[1]), Path(sys.argv[2])).decide(ReviewDecision("n01/cat-1.jpg", "right"))
"""


@pytest.mark.parametrize(("on_limit", "ends"), [("SIG_DFL", -signal.SIGXFSZ), ("SIG_IGN", 1)], ids=["killed", "failed"])
def test_a_move_to_another_disk_that_ends_half_way_leaves_no_half_image(
    folder: Path, other_disk: Path, on_limit: str, ends: int
) -> None:
    """A limit on the size of files ends the copy after half of it, as a kill or as an error."""
    image = os.urandom(200_000)
    (folder / "n01" / "cat-1.jpg").write_bytes(image)
    command = [sys.executable, "-c", INTERRUPTED, str(folder), str(other_disk), on_limit]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == ends, done.stderr
    left = files(other_disk)
    assert (folder / "n01" / "cat-1.jpg").read_bytes() == image
    assert left == set() if on_limit == "SIG_IGN" else not any(name.endswith(".jpg") for name in left)
    Review(folder, other_disk).decide(ReviewDecision("n01/cat-1.jpg", "right"))
    assert files(other_disk) == {"n01/cat-1.jpg"}
    assert (other_disk / "n01" / "cat-1.jpg").read_bytes() == image
    assert "n01/cat-1.jpg" not in files(folder)
