"""How images are prepared for a model: proven by labelled images as it is added, and corrected later."""

import json
from pathlib import Path

import pytest

from jetsel.zoo import Model, scan
from jetsel.zoo.conventions import convention
from tests.unit.cli.model_commands import run
from tests.unit.zoo.lights import SIDE_PX, put_light_model


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
    assert lamp(config).manifest.input == convention("keras", SIDE_PX, SIDE_PX)
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
