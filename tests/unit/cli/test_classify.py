"""Which images `jetsel classify` and the comparison of engines read, and which models are built as engines."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from jetsel.base.config import Config, Models
from jetsel.cli.app import app
from jetsel.cli.classify import _list_files
from jetsel.cli.models.candidates import requested_candidates
from jetsel.cli.models.samples import images_in
from jetsel.image import Limits
from tests.system.daemons import drawn, encoded


def test_of_a_folder_all_photographs_are_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.JPG", "a.png", "deep/c.webp", "notes.txt", "._b.JPG"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    single = tmp_path / "notes.txt"
    assert _list_files([single, tmp_path]) == [single, *(tmp_path / name for name in ("a.png", "b.JPG", "deep/c.webp"))]
    assert capsys.readouterr().err.splitlines()[::2] == ["left out: 1 hidden", "left out: 1 not an image"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(typer.BadParameter, match=r"empty: holds no JPEG, PNG or WebP file$"):
        _list_files([tmp_path / "empty"])
    (tmp_path / "empty" / "@eaDir" / "0.jpg").mkdir(parents=True)
    with pytest.raises(typer.BadParameter, match=r"holds no JPEG, .*; left out: 1 made by a system"):
        _list_files([tmp_path / "empty"])


LIMITS = Limits(10**7, 10**7)


def put(folder: Path, *names: str) -> None:
    for seed, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encoded(drawn(seed)))


def test_of_many_some_of_all_parts_are_taken(tmp_path: Path) -> None:
    put(tmp_path, *(f"{number}.jpg" for number in range(9)))
    found = images_in(tmp_path, 3, LIMITS, 64)
    assert found.source == f"3 of 9 images of {tmp_path}"
    pictures = [photograph.bgr.tolist() for photograph in found]
    assert pictures == [photograph.bgr.tolist() for photograph in images_in(tmp_path, 9, LIMITS, 64)][::3]


def test_models_of_other_backends_are_not_built() -> None:
    config = Config(models=Models(backends={"s": "tensorrt", "m": "onnxruntime"}))
    found = requested_candidates(config, [], None)
    assert [(one.family.name, one.name, one.weights.classes) for one in found] == [("starter", "s", 100)]


def test_a_method_whose_library_is_missing_is_refused_before_the_images_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    done = CliRunner().invoke(app, ["models", "optimize", "xs", "--method", "prune", "--images", str(tmp_path)])
    assert done.exit_code == 1
    assert "prune needs torch: " in done.stderr
