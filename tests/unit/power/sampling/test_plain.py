"""Which readings no sensor renews."""

from pathlib import Path

import pytest

from jetsel.power.sampling import plain
from jetsel.power.sampling.plain import filesystem, is_plain


def test_a_file_that_was_written_is_plain(tmp_path: Path):
    (tmp_path / "a b").mkdir()
    assert is_plain(f"0-0041/0 in {tmp_path / 'a b'}")
    assert is_plain(str(tmp_path))


@pytest.mark.parametrize(
    "where", ["0-0041/0 in /sys", "/proc/self", "GPU 0 of libnvidia-ml.so.1", "in /nowhere/at/all"]
)
def test_what_a_kernel_or_a_library_answers_is_not(where: str):
    assert not is_plain(where)


def test_the_innermost_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:9 / {tmp_path}/live\\040one rw,nosuid shared:1 - fuse.simulator x rw\n"
    )
    monkeypatch.setattr(plain, "MOUNTS", mounts)
    assert filesystem(f"{tmp_path}/live one/class") == "fuse.simulator"
    assert filesystem(f"{tmp_path}/live oneself") == "ext4"
    monkeypatch.setattr(plain, "MOUNTS", tmp_path / "none")
    assert filesystem("/") is None
