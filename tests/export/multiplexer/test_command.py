"""`jetsel train-multiplexer` as its first user finds it, on views of three photographs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetsel.cli.app import app
from jetsel.policies import installed
from jetsel.zoo import STARTER, scan, verify
from jetsel.zoo.held_out import read_held_out
from tests.system.test_calibrate import configured, put

pytestmark = pytest.mark.export
VIEWS = 120


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photographs, and a configuration with a folder for models of the owner's."""
    folder = tmp_path_factory.mktemp("home")
    put(folder / "photos", VIEWS)
    (folder / "models").mkdir()
    configured(folder, f'paths = ["{folder}/models"]\nonly = ["xs", "s", "xs-joint", "s-joint", "multiplexer"]\n')
    return folder


def run(home: Path, *command: str) -> str:
    """Run a command in this process, where torchvision's operators are declared; return what it printed."""
    done = CliRunner().invoke(app, [*command, "--config", str(home / "own.toml")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_multiplexer_is_trained_added_and_calibrated_with(home: Path) -> None:
    photos = str(home / "photos")
    said = json.loads(run(home, "train-multiplexer", "starter", photos, "--json"))
    assert said["models"] == ["xs", "s"]
    assert any(one["share"] == said["cut"] for one in said["cuts"])
    multiplexer = scan([STARTER, home / "models"]).families["starter"].multiplexer
    assert multiplexer is not None
    verify(multiplexer)
    assert len(read_held_out(multiplexer)) == said["photographs"] == VIEWS

    run(home, "calibrate", photos, "--family", "starter", "--policy", "multiplexer-cascade", "--json")
    entry = installed.current(home / "calibrations", "starter")
    assert entry is not None
    calibration = entry.usable()
    assert calibration.multiplexer is not None
    assert calibration.multiplexer.identity == multiplexer.manifest.identity
    assert {"multiplexer", "multiplexer-ensemble", "multiplexer-cascade"} <= set(calibration.parts)


def test_models_are_trained_together_and_the_multiplexer_is_theirs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(home / "state"))
    photos = str(home / "photos")
    one = run(home, "train-multiplexer", "starter", photos, "--joint", photos, "--epochs", "1", "--loss", "ensemble")
    assert "chooses among xs-joint, s-joint" in one
    family = scan([STARTER, home / "models"]).families["starter"]
    assert family.multiplexer is not None
    assert family.multiplexer.manifest.multiplexes is not None
    assert family.multiplexer.manifest.multiplexes.loss == "ensemble"
    names = [model.manifest.name for model in family.models]
    assert names.index("xs-joint") < names.index("m"), "its time is told as its parent's is"
    joint = family.models[names.index("s-joint")]
    assert joint.manifest.derived_from is not None
    assert "contrastive loss times 0.3, 1 epochs" in joint.manifest.derived_from.recipe

    again = ("--joint", photos, "--epochs", "1", "--contrast", "0")
    run(
        home, "train-multiplexer", "starter", photos, *again
    )  # other models of the same names: the first one is left out
    family = scan([STARTER, home / "models"]).families["starter"]
    assert "xs-joint-joint" not in {model.manifest.name for model in family.models}
    assert family.multiplexer is not None
    assert family.multiplexer.manifest.multiplexes is not None
    assert family.multiplexer.manifest.multiplexes.loss == "right"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "xs", "--model", "sx"], "did you mean"),
        (["--model", "xs"], "two models at the least"),
        (["--model", "xs", "--model", "l"], "there is no model l"),  # [models] only leaves it out
    ],
)
def test_what_cannot_be_is_told_with_what_to_do(home: Path, more: list[str], said: str) -> None:
    command = ["train-multiplexer", "starter", str(home / "photos"), *more, "--config", str(home / "own.toml")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert said in done.output


def test_what_is_trained_jointly_must_be_served(home: Path, tmp_path: Path) -> None:
    configured(tmp_path, f'paths = ["{home}/models"]\nonly = ["xs", "s"]\n')
    photos = str(home / "photos")
    command = ["train-multiplexer", "starter", photos, "--joint", photos, "--config", str(tmp_path / "own.toml")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert "only leaves out xs-joint, s-joint" in done.output
