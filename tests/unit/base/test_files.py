"""Single files: whole or as before, bounded, and one writer at a time."""

import errno
import os
import threading
from pathlib import Path

import pytest

from jetsel.base.files import locked, read_bounded, repair_of, replace, sha256_of
from tests.unit.base.conftest import Fault


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path, fault: Fault) -> None:
    path = tmp_path / "file"
    replace(path, b"old")
    failed = 0
    for _ in fault.at_each_step():
        try:
            replace(path, b"new")
        except OSError:
            failed += 1
            assert path.read_bytes() in (b"old", b"new")
        else:
            break
    assert failed > 2
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_is_read_up_to_its_bound_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(OSError, match="exceeds the limit of 4 bytes") as large:
        read_bounded(path, 4)
    assert large.value.errno == errno.EFBIG
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for other in (tmp_path / "pipe", tmp_path / "endless", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            read_bounded(other, 5)
        with pytest.raises(OSError, match="not a regular file"):
            sha256_of(other)


def test_the_second_writer_is_told_and_waits(tmp_path: Path) -> None:
    told, entered = threading.Event(), threading.Event()

    def second() -> None:
        with locked(tmp_path, told.set):
            entered.set()

    with locked(tmp_path):
        other = threading.Thread(target=second)
        other.start()
        assert told.wait(60)
        assert not entered.is_set()
    other.join(60)
    assert entered.is_set()


def test_the_repair_suits_the_fault() -> None:
    for number, said in (
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "user who may write"),
        (errno.EIO, "repair this"),
    ):
        assert said in repair_of(OSError(number, os.strerror(number)))
