"""`jetsel models` in process: what is added, what is refused with which repair, and what removing one says."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from jetsel.base.names import RULE
from jetsel.cli.app import app
from jetsel.zoo import scan
from jetsel.zoo.manifest import Preprocessing
from jetsel.zoo.onnx_model import read_model
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.unit.cli.model_commands import add, only_model, run
from tests.unit.daemon.families import put_family
from tests.unit.zoo.networks import network

SOFTMAX = ("Softmax", "scores", "shares")


def test_what_is_left_out_is_found_out(own: Path, onnx: Path, labels: Path) -> None:
    said = add(onnx, labels)
    model = only_model(own)
    manifest = model.manifest
    assert (manifest.name, manifest.family, manifest.version) == ("tiny-net", "drinks", "1.0.0")
    assert (manifest.input.width_px, manifest.input.height_px) == (WIDTH_PX, HEIGHT_PX)
    assert (manifest.input.mean, manifest.input.std) == ((0.5, 0.25, 0.125), (0.25, 0.5, 1.0))
    assert (manifest.embedding_width, manifest.parameters) == (PIXELS, 3 * PIXELS)
    assert manifest.latency_ms is not None
    assert (manifest.provenance.source, manifest.provenance.notice) == ("added from Tiny Net.onnx", None)
    assert model.path.read_bytes() == onnx.read_bytes()
    assert "added tiny-net 1.0.0 to family drinks: 3 classes" in said
    assert "jetsel reload" in said


def test_every_option_reaches_the_manifest(own: Path, tmp_path: Path, labels: Path) -> None:
    onnx = tmp_path / "net.onnx"
    onnx.write_bytes(network(SOFTMAX, outputs=["shares"], sides=("n", 3, "h", "w")))
    options = "--name quick --family cups --version 2.3.4 --input 3x2 --resize shorter-side --resize-px 5"
    options += " --interpolation bicubic --crop center --channels bgr --output scores"
    said = json.loads(add(onnx, labels, *options.split(), "--source", "my own", "--notice", "ask me", "--json"))
    model = only_model(own)
    assert (model.manifest.name, model.manifest.family, model.manifest.version) == ("quick", "cups", "2.3.4")
    spec = model.manifest.input
    assert (spec.resize, spec.resize_px, spec.interpolation, spec.channels) == ("shorter-side", 5, "bicubic", "bgr")
    assert model.manifest.provenance.notice == "ask me"
    assert model.manifest.provenance.source.startswith("my own; changed from a file of sha256 ")
    assert model.manifest.provenance.source.endswith(": its tensor scores is the output logits")
    assert said["changes"] == ["its tensor scores is the output logits"]
    assert [value.name for value in read_model(model.path).graph.output] == ["logits"]
    assert (said["name"], said["classes"], said["notes"]) == ("quick", 3, [])
    assert said["latency_ms"] > 0
    assert Path(said["manifest"]).parent == own


def test_what_was_put_right_is_printed(own: Path, tmp_path: Path, labels: Path) -> None:
    onnx = tmp_path / "net.onnx"
    sigmoid = ("Sigmoid", "scores", "shares")
    onnx.write_bytes(network(sigmoid, outputs=["shares"], sides=("n", HEIGHT_PX, WIDTH_PX, 3)))
    assert "exactly one class: add it with --exclusive" in add(onnx, labels, status=1)
    said = add(onnx, labels, "--exclusive")
    assert f"its input is {HEIGHT_PX} x {WIDTH_PX} x 3 float32: a transpose put in front" in said
    assert "comes from Sigmoid: its tensor scores is the output" in said
    assert "its source: added from net.onnx\n" in said
    assert "; changed from a file of sha256 " in only_model(own).manifest.provenance.source


def test_a_folder_that_describes_its_model_needs_no_option(own: Path, onnx: Path, tmp_path: Path) -> None:
    folder = tmp_path / "My Drinks"
    (folder / "onnx").mkdir(parents=True)
    onnx.rename(folder / "onnx" / "model.onnx")
    (folder / "config.json").write_text('{"id2label": {"1": "coffee", "0": "tea", "2": "milk"}, "model_type": "vit"}')
    prepared = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"height": 3, "width": 4}, "resample": 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    said = run("add", folder)
    manifest = only_model(own).manifest
    assert (manifest.name, manifest.family, manifest.provenance.source) == (
        "my-drinks",
        "my-drinks",
        "added from My Drinks",
    )
    assert scan([own]).families["my-drinks"].labels.names == ("tea", "coffee", "milk")
    spec = manifest.input
    assert (spec.resize, spec.crop, spec.interpolation) == ("stretch", "none", "antialiased-bicubic")
    assert (spec.channels, spec.mean, spec.std) == ("rgb", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert manifest.preprocessing == Preprocessing(source="preprocessor_config.json")
    assert "preprocessor_config.json: resize stretch" in said.replace("interpolation antialiased-bicubic; ", "")
    assert "config.json: labels 3 classes" in said


@pytest.mark.parametrize("wrong", ["My Flowers", "日本", "../x", "a" * 65, "Aé"])
def test_a_name_that_cannot_be_used_is_refused_in_words_before_any_work(own: Path, onnx: Path, wrong: str) -> None:
    images = onnx.parent / "images"
    images.mkdir()
    commands = [("add", onnx, "--labels", "missing", "--mean", "0,0,0", "--std", "1,1,1", "--name", wrong)]
    commands += [(*commands[0][:-2], "--family", wrong), ("pull", "efficientnet-lite", "--family", wrong)]
    for command in [*commands, ("train-head", images, "--family", wrong)]:
        done = CliRunner().invoke(app, ["models", *map(str, command)], env={"COLUMNS": "300"})
        assert done.exit_code == 2
        assert f"{wrong!r} cannot be a name: {RULE}" in done.stderr
        assert "$" not in done.stderr
    assert not own.exists()


def test_another_copy_goes_into_a_folder_that_no_daemon_reads_and_into_no_other(
    own: Path, onnx: Path, labels: Path, tmp_path: Path
) -> None:
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[models]\npaths = ["{tmp_path / "second"}"]\n')
    (tmp_path / "second").mkdir()
    add(onnx, labels)
    for replaced in ([], ["--replace"]):
        printed = add(onnx, labels, *replaced, "--folder", tmp_path / "second", status=1, config=str(config))
        assert "choose another name with --name" in printed
    add(onnx, labels, "--folder", tmp_path / "mine")
    assert only_model(tmp_path / "mine").manifest.sha256 == only_model(own).manifest.sha256
    assert "choose another name with --name" in add(onnx, labels, "--folder", tmp_path / "mine", status=1)


def test_other_labels_are_another_family_unless_the_only_model_is_replaced(own: Path, onnx: Path, labels: Path) -> None:
    add(onnx, labels)
    labels.write_text("tea\ncoffee\nwater\n")
    assert "has other classes than" in add(onnx, labels, "--name", "second", status=1)
    add(onnx, labels, "--replace")
    only_model(own)
    assert scan([own]).families["drinks"].labels.names == ("tea", "coffee", "water")
    assert len(list(own.iterdir())) == 3


def test_what_does_not_run_well_is_not_added(own: Path, tmp_path: Path, labels: Path) -> None:
    onnx = tmp_path / "net.onnx"
    for content, said in (
        (network(("NoSuch", "scores", "logits"), outputs=["logits"]), "ONNX Runtime does not load"),
        (matrix_model(np.full((PIXELS, 3), np.nan, np.float32)), "not finite"),
    ):
        onnx.write_bytes(content)
        assert said in add(onnx, labels, status=1)
        assert not own.exists() or not any(own.iterdir())


def test_the_first_configured_folder_that_can_be_written_to_is_taken(
    own: Path, onnx: Path, labels: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[models]\npaths = ["{tmp_path / "nowhere"}", "{second}"]\nonly = ["xs"]\n')
    said = add(onnx, labels, config=str(config))
    only_model(second)
    assert 'write only = ["xs", "tiny-net"]' in said


def test_removing_asks_first(own: Path, onnx: Path, labels: Path) -> None:
    add(onnx, labels)
    run("remove", "tiny-net", status=1, answer="n\n")
    run("remove", "tiny-net", status=1, answer="")
    only_model(own)
    assert "removed tiny-net of family drinks" in run("remove", "tiny-net", answer="y\n")
    assert list(own.iterdir()) == []
    assert "there is no model tiny-net" in run("remove", "tiny-net", "--yes", status=1)


def test_what_ships_with_jetsel_stays() -> None:
    assert "xs ships with jetsel and cannot be removed" in run("remove", "xs", "--yes", status=1)


def test_a_name_of_two_families_needs_the_family(own: Path, onnx: Path, labels: Path) -> None:
    add(onnx, labels)
    add(onnx, _relabelled(labels), "--family", "cups")
    assert "use --family drinks or cups" in run("remove", "tiny-net", "--yes", status=1).replace(
        "cups or drinks", "drinks or cups"
    )
    run("remove", "tiny-net", "--yes", "--family", "cups")
    assert only_model(own).manifest.family == "drinks"


def test_a_family_is_removed_as_a_whole(own: Path, onnx: Path, labels: Path) -> None:
    add(onnx, labels)
    add(onnx, labels, "--name", "other")
    hint = "drinks is a family: jetsel models remove --family drinks"
    assert hint in run("remove", "drinks", "--yes", status=1)
    assert "removed " in run("remove", "--family", "drinks", "--yes")
    assert not list(own.glob("*.json"))
    assert "there is no family drinks" in run("remove", "--family", "drinks", "--yes", status=1)


def test_calibrations_and_settings_that_need_the_model_are_named(tmp_path: Path) -> None:
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[models]\nstarter = false\npaths = ["{folder}"]\nonly = ["s", "l"]\n[policy]\nfallback = "s"\n')
    said = json.loads(run("remove", "s", "--yes", "--json", config=str(config)))
    lost, named = said["notes"]
    assert "calibrations of family cats" in lost
    assert "models.only, policy.fallback" in named
    assert only_model(folder).manifest.name == "l"


def test_means_in_levels_are_refused_with_the_values_that_are_meant(own: Path, onnx: Path, labels: Path) -> None:
    command = ["models", "add", str(onnx), "--labels", str(labels), "--mean", "127,127,127", "--std", "128,128,128"]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "units of 0 to 1: 0.498,0.498,0.498" in done.stderr
    assert not own.exists()


def _relabelled(labels: Path) -> Path:
    labels.write_text("cup\nmug\nglass\n")
    return labels
