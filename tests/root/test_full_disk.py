"""What is written to a small file system that is full is refused with the repair, and what was there stays."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jetsel.addons.cameras.review import Review, ReviewDecision
from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.reading import fetch, read_bundle, read_index
from jetsel.addons.fleet.sources import FolderRepository
from jetsel.addons.fleet.storage import Storage
from jetsel.artefact.calibration import Calibration
from jetsel.artefact.coding import read
from jetsel.artefact.installed import current, history, install
from jetsel.base.errors import BadRequestError, CalibrationError, RepositoryError
from jetsel.zoo import STARTER, scan
from tests.unit.addons.fleet.published import family_folder, pair, publish

PAGE = 4096  # what the file system hands out at a time


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB and 64 inodes in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=64", "jetsel-test", str(folder)]
    subprocess.run(mounted, check=True, timeout=30)
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=30)


def calibration(created: str) -> Calibration:
    return msgspec.structs.replace(read(STARTER / "calibration"), created=created)


def leave(folder: Path, free_bytes: int) -> None:
    """Fill the disk but for so many bytes, a multiple of the page."""
    filler = folder / "filler"
    filler.unlink(missing_ok=True)
    found = os.statvfs(folder)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - free_bytes)


def assert_untouched(disk: Path) -> None:
    found = current(disk, "starter")
    assert found.usable_calibration().created == "old"
    assert [one.number for one in history(disk, "starter")] == [1]
    assert sorted(entry.name for entry in (disk / "starter").iterdir()) == ["1", "current"]


def test_wherever_the_space_ends_the_installed_one_stays(disk: Path) -> None:
    install(calibration("old"), disk, "starter")
    new, needed = calibration("new"), sum(file.stat().st_size for file in (disk / "starter" / "1").iterdir())
    refused = 0
    for free_bytes in range(0, 2 * needed, PAGE):
        leave(disk, free_bytes)
        try:
            install(new, disk, "starter", "a report")
        except CalibrationError as refusal:
            refused += 1
            assert "free some space there" in str(refusal)  # noqa: PT017
            assert_untouched(disk)
        else:
            break
    assert refused >= needed // PAGE
    found = current(disk, "starter")
    assert (found.number, found.usable_calibration().created) == (2, "new")


def test_a_reviewed_image_for_which_there_is_no_space_stays_where_it_is(disk: Path, tmp_path: Path) -> None:
    image = tmp_path / "doubts" / "cat" / "a-1.jpg"
    image.parent.mkdir(parents=True)
    image.write_bytes(bytes(4 * PAGE))
    review, decision = Review(tmp_path / "doubts", disk / "reviewed"), ReviewDecision("cat/a-1.jpg", "right")
    leave(disk, 2 * PAGE)
    with pytest.raises(BadRequestError, match="free some space"):
        review.decide(decision)
    assert image.stat().st_size == 4 * PAGE
    assert [path for path in (disk / "reviewed").rglob("*") if path.is_file()] == []
    (disk / "filler").unlink()
    review.decide(decision)
    assert (disk / "reviewed" / "cat" / "a-1.jpg").stat().st_size == 4 * PAGE


def test_models_for_which_there_is_no_space_are_fetched_once_there_is(disk: Path, tmp_path: Path) -> None:
    key, url = pair(tmp_path, "key"), tmp_path / "repository"
    publishing.init(Storage(str(url)), [key.private])
    publish(Storage(str(url)), family_folder(tmp_path / "models", "small"), key)
    source = FolderRepository(url)
    index, _ = read_index(source, [key.public])
    bundle, _ = read_bundle(source, index.bundles[0], [key.public])
    leave(disk, 2 * PAGE)
    with pytest.raises(RepositoryError, match="free some space"):
        fetch(source, bundle, disk / "device")
    (disk / "filler").unlink()
    assert scan([fetch(source, bundle, disk / "device")]).families.keys() == {"pets"}
