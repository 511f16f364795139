"""How images are prepared for a model: proven by labelled images as it is added, and corrected later."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jetsel.zoo import Model, scan
from jetsel.zoo.conventions import convention_spec
from tests.unit.cli.model_commands import only_model, run
from tests.unit.zoo.lights import LABELS, MODEL, SIDE_PX, lights, put_light_model


@pytest.fixture
def config(tmp_path: Path) -> str:
    put_light_model(tmp_path / "models", "lamp", "timm", is_doubted=True)
    path = tmp_path / "jetsel.toml"
    path.write_text(f'[models]\npaths = ["{tmp_path}/models"]\n')
    return str(path)


def lamp(config: str) -> Model:
    (model,) = scan([Path(config).parent / "models"]).families["lights"].models
    return model


def test_a_convention_is_set_and_options_change_only_what_they_name(config: str) -> None:
    before = lamp(config)
    said = run("set", "lamp", "--like", "keras", config=config)
    assert "channels bgr" in said
    assert "run `jetsel calibrate IMAGES`" in said
    assert lamp(config).manifest.input == convention_spec("keras", SIDE_PX, SIDE_PX)
    assert lamp(config).manifest.identity != before.manifest.identity
    assert lamp(config).path.read_bytes() == before.path.read_bytes()
    run("set", "lamp", "--like", "torchvision", config=config)
    said = json.loads(run("set", "lamp", "--family", "lights", "--channels", "bgr", "--json", config=config))
    assert (said["input"]["channels"], said["input"]["resize_px"]) == ("bgr", 9)
    assert said["preprocessing"] == {"source": "jetsel models set, channels", "is_checked": False}
    run("set", "lamp", "--resize", "stretch", "--mean", "0,0,0", config=config)
    spec = lamp(config).manifest.input
    assert (spec.resize, spec.resize_px, spec.mean, spec.channels) == ("stretch", None, (0, 0, 0), "bgr")
    run("set", "lamp", "--resize", "shorter-side", "--resize-px", "12", config=config)
    assert (lamp(config).manifest.input.crop, lamp(config).manifest.input.resize_px) == ("center", 12)


def test_what_cannot_be_set_changes_nothing(config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lamp(config)
    run("set", "lamp", status=2, config=config)
    for options, said in (
        (("--like", "tochvision"), "did you mean torchvision"),
        (("--resize-px", "4"), "must be at least the longer"),
        (("--std", "0,1,1"), "must be over 0"),
    ):
        assert said in run("set", "lamp", *options, status=1, config=config)
    assert "ships with jetsel" in run("set", "xs", "--like", "keras", status=1, config=config)
    assert lamp(config) == before
    planned = tmp_path / "state-agent" / "installed" / "current"
    planned.mkdir(parents=True)
    (tmp_path / "models").rename(planned / "000-lights")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    assert "came with a fleet's plan" in run("set", "lamp", "--like", "keras", status=1, config=config)


@pytest.fixture
def add(own: Path, tmp_path: Path) -> Callable[..., str]:
    """Return what adds a model for the levels -1 to 1, checked on images: its options, and how many images."""
    onnx, labels = tmp_path / "lamp.onnx", tmp_path / "lights.tsv"
    onnx.write_bytes(MODEL)
    labels.write_text(LABELS)

    def go(*options: object, images: int = 20, status: int = 0) -> str:
        shown = lights(tmp_path / str(images), images)
        sizes = ("--labels", labels, "--input", f"{SIDE_PX}x{SIDE_PX}")
        said = run("add", onnx, *sizes, "--check", shown, *options, status=status)
        assert own.exists() == (status == 0) or not any(own.iterdir())
        return said

    return go


@pytest.mark.parametrize("options", [("--like", "keras-tf"), ("--mean", "0.5,0.5,0.5", "--std", "0.5,0.5,0.5")])
def test_a_model_that_labelled_images_prove_is_added_with_the_proof(
    add: Callable[..., str], own: Path, options: tuple[str, ...]
) -> None:
    rows = {line.rpartition(" 20")[0].strip() for line in add(*options).splitlines() if " 20 " in f"{line} "}
    assert "as described" in rows
    found = only_model(own).manifest.preprocessing
    assert found is not None
    assert found.is_checked
    assert found.source.endswith("; checked on 20 images")


@pytest.mark.parametrize(
    "options",
    [
        ("--like", "torchvision"),
        ("--mean", "0.00196,0.00196,0.00196", "--std", "0.5,0.5,0.5"),  # divided by 255 once too often
    ],
)
def test_a_model_that_is_prepared_wrongly_is_refused_with_the_option_that_repairs_it(
    add: Callable[..., str], options: tuple[str, ...]
) -> None:
    said = add(*options, status=1)
    assert "right on 10 of 20 images" in said
    assert "on 20 with --like keras-tf" in said
    add("--like", "keras-tf")


def test_if_nothing_describes_a_model_the_images_find_its_convention(add: Callable[..., str]) -> None:
    assert "most often with --like keras-tf" in add(status=1)


def test_too_few_images_are_refused_and_those_of_other_classes_left_out(
    add: Callable[..., str], tmp_path: Path, own: Path
) -> None:
    said = add("--like", "keras-tf", images=8, status=1)
    assert "8 images of 2 of the model's classes" in said
    assert "give 10 to 100 images" in said
    lights(tmp_path / "20", 20)
    shutil.copytree(tmp_path / "20" / "dark", tmp_path / "20" / "noon")
    (tmp_path / "20" / "dark" / "broken.png").write_bytes(b"")
    assert "left out: 11 files" in add("--like", "keras-tf")
    assert only_model(own).manifest.is_unproven is False


def test_what_a_guess_may_be_right_on_too_is_added_unproven(add: Callable[..., str], own: Path, tmp_path: Path) -> None:
    images = lights(tmp_path / "10", 10)
    shutil.copy(images / "dark" / "000.png", images / "bright" / "wrong.png")  # 10 of 11: 1.3 % of guesses reach it
    assert "note: it is right on 10 of 11 images" in add("--like", "keras-tf", images=10)
    assert only_model(own).manifest.is_unproven
    said = json.loads(add("--like", "keras-tf", "--name", "again", "--family", "again", "--json"))
    assert said["preprocessing"]["is_checked"] is True
