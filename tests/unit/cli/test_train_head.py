"""`jetsel models train-head` as its first user finds it, on the starter family's own embeddings."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from jetsel.base.weights import learned_images
from jetsel.cli.app import app
from jetsel.zoo import scan, verify

STARTER_MODELS = ("xs", "s", "s-night", "m", "m-night", "l", "xl")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two kinds of drawn pictures."""
    draw = np.random.default_rng(1)
    for kind, colour in (("red", (20, 20, 220)), ("blue", (220, 20, 20))):
        (tmp_path / "colours" / kind).mkdir(parents=True)
        for number in range(12):
            picture = np.clip(np.array(colour) + draw.normal(0, 30, (48, 48, 3)), 0, 255).astype(np.uint8)
            cv2.imwrite(str(tmp_path / "colours" / kind / f"{number}.png"), picture)
    (tmp_path / "colours" / "red" / "none.jpg").write_bytes(b"no photograph")
    return tmp_path / "colours"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["models", "train-head", *map(str, arguments)])


def test_a_family_is_made_that_shares_the_backbones_files(photos: Path, tmp_path: Path, own: Path) -> None:
    command = (photos, "--backbone", "starter", "--json")
    for again in ([], ["--replace"]):  # trained anew, in the place of the old ones
        done = run(*command, *again)
        assert done.exit_code == 0, done.output
        said = json.loads(done.output)
        assert (said["family"], said["classes"]) == ("colours", ["blue", "red"])
        assert (said["photographs"], said["unreadable"]) == (24, 1)
        (reason,) = (reason for path, reason in said["left_out"] if path.endswith("red/none.jpg"))
        assert reason.startswith("unreadable: ")
        assert all(accuracy == 1.0 for accuracy in said["accuracy"].values())
    found = scan([own]).families["colours"]
    assert [model.manifest.name for model in found.models] == list(STARTER_MODELS)
    for model in found.models:
        verify(model)
        assert model.weights(2).backbone.classes == 100
    elsewhere = run(*command, "--family", "others", "--folder", tmp_path / "elsewhere")
    assert elsewhere.exit_code == 0, elsewhere.output
    assert list(scan([tmp_path / "elsewhere"]).families) == ["others"]
    heads = list(own.glob("*.npz"))
    assert len(heads) == len(found.models)
    assert [len(learned_images(head)) for head in heads] == [24] * len(heads)  # none.jpg was not read


def heads_of(folder: Path) -> dict[str, bytes]:
    """The files of heads and manifests in a folder, without those of the night's."""
    paths = [path for path in folder.iterdir() if path.suffix in {".npz", ".json", ".tsv"}]
    return {path.name: path.read_bytes() for path in paths if "-dark" not in path.name}


def test_heads_for_another_kind_of_images_join_the_family_and_leave_the_others_alone(
    photos: Path, tmp_path: Path, own: Path
) -> None:
    assert run(photos, "--backbone", "starter", "--family", "yard").exit_code == 0
    before = heads_of(own)
    night = shutil.copytree(photos, tmp_path / "night")
    for path in night.glob("*/*.png"):
        cv2.imwrite(str(path), cv2.imread(str(path)) // 4)
    one = run(night, "--family", "yard", "--name", "dark", "--backbone", "m")
    assert one.exit_code == 0, one.output
    names = {model.manifest.name for model in scan([own]).families["yard"].models}
    assert names == {*STARTER_MODELS, "m-dark"}
    taken = run(night, "--family", "yard", "--name", "dark")
    assert "m-dark already: choose another --name; --replace" in taken.stderr
    done = run(night, "--family", "yard", "--name", "dark", "--replace")
    assert done.exit_code == 0, done.output
    assert "xs-dark: 100.0 % right" in done.stdout
    assert "(4 images, \u00b1 24)" in done.stdout
    clash = run(night, "--family", "yard", "--name", "night", "--replace")
    assert "family yard has s-night, m-night on other backbones" in clash.stderr
    removed = CliRunner().invoke(app, ["models", "remove", "dark", "--family", "yard", "--yes"])
    assert "of the kind dark it has xs-dark, s-dark, " in removed.stderr
    found = scan([own])
    assert found.broken == ()
    by_name = {model.manifest.name: model for model in found.families["yard"].models}
    assert set(by_name) == {name + kind for name in STARTER_MODELS for kind in ("", "-dark")}
    assert heads_of(own) == before
    for name in STARTER_MODELS:
        first, other = by_name[name], by_name[f"{name}-dark"]
        verify(other)
        assert other.path == first.path, "the backbone's file is shared"
        assert other.weights(2).backbone.classes == 100
        assert other.manifest.identity != first.manifest.identity
        source = other.manifest.provenance.source
        assert source.startswith(f"head for night, on the backbone of {name} (head for colours, on ")
    again = run(night, "--backbone", "starter", "--replace")
    assert "family night: 2 classes" in again.stdout, "those images alone do not lead into the family"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--name", "dark"), "name it with --family"),
        (
            ("--family", "yart", "--name", "dark"),
            "there is no family yart (did you mean yard?): train its first heads",
        ),
        (("--family", "yard", "--name", "dark", "--backbone", "n"), "--backbone: family yard has no model n"),
        (("--family", "yard"), "use --family yard --name KIND"),
        (
            ("--family", "yard", "--name", "dark"),
            "need all its classes: add a folder of images for red; rename or remove green, which it does not know",
        ),
    ],
)
def test_heads_that_cannot_join_a_family_are_refused_with_the_repair(
    photos: Path, own: Path, options: tuple[str, ...], words: str
) -> None:
    assert run(photos, "--backbone", "starter", "--family", "yard").exit_code == 0
    if words.startswith("need all"):
        (photos / "red").rename(photos / "green")
    before = heads_of(own)
    done = run(photos, *options, *(("--backbone", "starter") if "--name" not in options else ()))
    assert done.exit_code in (1, 2)
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert "looking at" not in done.stderr
    assert heads_of(own) == before


def test_what_cannot_be_trained_is_refused_before_an_image_is_read(
    photos: Path, tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    for split in ("train", "val"):
        shutil.copytree(photos, tmp_path / "sets" / split)
    (photos / "green").mkdir()
    (photos / "green" / "notes.txt").touch()
    for folder, part in (
        (photos, "too few of green (0): 5 images of each of two or more classes are needed; 1 not an image left out"),
        (tmp_path / "empty", "it has no class folders; make one"),
        (tmp_path / "sets", f"give one of these: {tmp_path / 'sets' / 'train'}, {tmp_path / 'sets' / 'val'}"),
    ):
        done = run("--backbone", "starter", folder)
        assert done.exit_code == 1
        assert part in done.stderr
        assert "looking at" not in done.stderr
    shutil.rmtree(photos / "green")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = run("--backbone", "starter", photos)
    assert "scikit-learn is needed" in done.stderr
    assert "looking at" not in done.stderr


def test_a_backbone_that_is_not_there_names_the_command_that_brings_it(photos: Path, own: Path) -> None:
    done = run(photos)
    assert done.exit_code != 0
    assert "jetsel models pull efficientnet-lite" in done.stderr
