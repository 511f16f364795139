"""`jetsel models` in process: what is added, what is refused with which repair, and what removing one says."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs
from typer.testing import CliRunner

from jetsel.base.config import Config, Host
from jetsel.base.config import Models as ModelsConfig
from jetsel.base.host_settings import Precision
from jetsel.base.names import RULE
from jetsel.base.weights import Head
from jetsel.cli.app import app
from jetsel.cli.models.family import Pull, Pulled, add_rungs
from jetsel.cli.models.precision import is_int8_chosen
from jetsel.power.machine import Machine
from jetsel.zoo import Model, pretrained, scan, verify
from jetsel.zoo.adding import ModelDescription, add_head
from jetsel.zoo.joining import NewFamily
from jetsel.zoo.labels import labels_file
from jetsel.zoo.manifest import PrecisionChoice
from jetsel.zoo.onnx_model import read_model
from jetsel.zoo.placing import take_out
from jetsel.zoo.pretrained import SPEC, Rung, RungPair, drawn
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model, mean_model
from tests.doubles.interpreter import make_interpreter
from tests.unit.daemon.families import put_family
from tests.unit.zoo.networks import network

PLAIN = ["--mean", "0.5,0.25,0.125", "--std", "0.25,0.5,1"]
SOFTMAX = ("Softmax", "scores", "shares")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are added to where the configuration names none."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state" / "models"


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny Net.onnx"
    path.write_bytes(matrix_model(np.ones((PIXELS, 3), np.float32)))
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "drinks.txt"
    path.write_text("tea\ncoffee\nmilk, cold milk\n")
    return path


def run(*arguments: object, status: int = 0, config: str = "", answer: str | None = None) -> str:
    """What the command prints: on the standard output where it succeeds, else its one line of error."""
    command = ["models", *map(str, arguments)]
    if config:
        command += ["--config", config]
    done = CliRunner().invoke(app, command, input=answer, env={"COLUMNS": "200"})
    assert done.exit_code == status, done.output
    if status == 1 and done.stderr.startswith("jetsel: "):
        assert len(done.stderr.splitlines()) == 1
        return done.stderr
    return done.stdout


def add(onnx: Path, labels: Path, *more: object, **how: Any) -> str:
    return run("add", onnx, "--labels", labels, *PLAIN, *more, **how)


def only_model(folder: Path) -> Model:
    (family,) = scan([folder]).families.values()
    (model,) = family.models
    verify(model)
    return model


def test_what_is_left_out_is_found_out(own: Path, onnx: Path, labels: Path) -> None:
    said = add(onnx, labels)
    model = only_model(own)
    manifest = model.manifest
    assert (manifest.name, manifest.family, manifest.version) == ("tiny-net", "drinks", "1.0.0")
    assert (manifest.input.width_px, manifest.input.height_px) == (WIDTH_PX, HEIGHT_PX)
    assert (manifest.input.mean, manifest.input.std) == ((0.5, 0.25, 0.125), (0.25, 0.5, 1.0))
    assert (manifest.outputs, manifest.embedding_width) == (("logits", "embedding"), PIXELS)
    assert manifest.parameters == 3 * PIXELS
    assert manifest.latency_ms is not None
    assert (manifest.source, manifest.notice) == ("added from Tiny Net.onnx", None)
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
    assert model.manifest.notice == "ask me"
    assert model.manifest.source.startswith("my own; the tensor scores of that file (sha256 ")
    assert model.manifest.source.endswith(") was made the output logits")
    assert [value.name for value in read_model(model.path).graph.output] == ["shares", "logits"]
    assert (said["name"], said["classes"], said["notes"]) == ("quick", 3, [])
    assert said["latency_ms"] > 0
    assert Path(said["manifest"]).parent == own


def test_a_second_model_of_the_same_folder_and_labels_joins_the_family(own: Path, onnx: Path, labels: Path) -> None:
    add(onnx, labels)
    assert "use --family NAME" in add(onnx, labels, "--name", "second")
    other = labels.with_name("others.json")
    other.write_text('["tea", "coffee", "milk, cold milk"]')
    add(onnx, other, "--name", "third", "--family", "drinks")
    (family,) = scan([own]).families.values()
    assert (family.name, {model.manifest.name for model in family.models}) == (
        "drinks",
        {"second", "third", "tiny-net"},
    )
    assert len(list(own.glob("*.tsv"))) == 1


def test_two_tasks_with_the_same_classes_are_two_families(own: Path, onnx: Path, labels: Path, tmp_path: Path) -> None:
    add(onnx, labels, "--family", "cups", "--name", "first")
    assert "in one cascade with it, use --family cups" in add(onnx, labels, "--name", "second")
    (tmp_path / "kitchen").mkdir()
    copies = [(tmp_path / "kitchen" / path.name) for path in (onnx, labels)]
    for path, copy in zip((onnx, labels), copies, strict=True):
        copy.write_bytes(path.read_bytes())
    said = add(*copies, status=1)
    assert "family drinks has the same classes" in said
    assert "--replace" not in said
    add(*copies, "--family", "kitchen")
    found = {name: [one.manifest.name for one in family.models] for name, family in scan([own]).families.items()}
    assert found == {"cups": ["first"], "drinks": ["second"], "kitchen": ["tiny-net"]}


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


@pytest.mark.parametrize(
    ("content", "classes", "said"),
    [
        (network(SOFTMAX, outputs=["shares"]), 3, "probabilities instead of logits: add it with --output scores"),
        (network(), 5, "one line for each number"),
        (network(("Log", "scores", "logits"), outputs=["logits"]), 3, "not finite"),
        (network(("NoSuch", "scores", "logits"), outputs=["logits"]), 3, "ONNX Runtime does not load"),
        (matrix_model(np.full((PIXELS, 3), np.nan, np.float32)), 3, "not finite"),
    ],
)
def test_what_does_not_run_well_is_not_added(
    own: Path, tmp_path: Path, labels: Path, content: bytes, classes: int, said: str
) -> None:
    onnx = tmp_path / "net.onnx"
    onnx.write_bytes(content)
    labels.write_text("".join(f"class {number}\n" for number in range(classes)))
    printed = add(onnx, labels, status=1)
    assert re.search(said, printed), printed
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


def test_a_pulled_family_goes_into_the_folder_that_is_named(own: Path, labels: Path, tmp_path: Path) -> None:
    pull = partial(_pulled, tmp_path, labels)
    first = pull()
    assert (first.models[0].directory, first.added) == (own, ["small-int8"])
    assert pull().added == [], "it is there already"
    second = pull(folder=tmp_path / "mine")
    assert (second.models[0].directory, second.added) == (tmp_path / "mine", ["small-int8"])
    assert pull(folder=tmp_path / "mine").added == []
    third = pull(family="cups")
    assert (third.models[0].manifest.family, third.added) == ("cups", ["small-int8"]), "another name is another family"


def test_a_model_with_a_head_of_its_own_is_not_taken_for_the_pulled_one(
    own: Path, labels: Path, tmp_path: Path
) -> None:
    (backbone,) = _pulled(tmp_path, labels).models
    head = Head(np.ones((3, 2), np.float32), np.zeros(2, np.float32))
    owners = NewFamily("cups", b"cup\tcup\nmug\tmug\n", "images")
    headed = add_head(backbone, head.content(), 3, owners, own, None)
    take_out(backbone)
    pulled = _pulled(tmp_path, labels)
    assert (pulled.models[0].manifest.family, pulled.added) == ("drinks", ["small-int8"])
    assert headed.path.is_file(), "which shares the backbone's file"
    assert headed.manifest.precision_choice is None


def test_the_precision_that_is_faster_here_is_pulled_and_takes_the_place_of_the_other(
    own: Path, labels: Path, tmp_path: Path
) -> None:
    pull = partial(_pulled, tmp_path, labels)
    first = pull(slower="small-int8")
    assert (first.added, first.removed, _names(own)) == (["small"], [], {"small"})
    choice = first.models[0].manifest.precision_choice
    assert choice is not None
    assert choice.float_ms is not None
    assert choice.int8_ms is not None
    assert choice.int8_ms > choice.float_ms
    assert choice.machine == Machine().facts().board.value
    assert " float, " in run("list")
    second = pull()
    assert (second.added, second.removed, _names(own)) == (["small-int8"], ["small"], {"small-int8"})


def test_the_command_says_which_model_took_the_place_of_which(
    own: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pulled(tmp_path, labels, slower="small-int8")
    monkeypatch.setattr(pretrained, "rungs", lambda *_, **__: [_pair(tmp_path, labels, "small")])
    said = run("pull", "efficientnet-lite")
    assert "removed, since the other precision is faster here: small\n" in said
    assert "calibrations that were made with small will be rejected" in said
    both = json.loads(run("pull", "efficientnet-lite", "--both", "--json"))
    assert ([model["name"] for model in both["models"]], both["removed"]) == (["small", "small-int8"], [])


def test_both_precisions_are_pulled_where_that_is_asked_for_and_stay_until_they_are_replaced(
    own: Path, labels: Path, tmp_path: Path
) -> None:
    pull = partial(_pulled, tmp_path, labels)
    pull()
    assert pull(both=True).added == ["small", "small-int8"], "the one that was there no longer is a choice"
    assert {model.manifest.precision_choice for model in pull().models} == {None}
    assert _names(own) == {"small", "small-int8"}
    replaced = pull(replace=True)
    assert (replaced.added, replaced.removed, _names(own)) == (["small-int8"], ["small"], {"small-int8"})


def test_a_pull_leaves_another_family_of_the_same_models_as_it_is(own: Path, labels: Path, tmp_path: Path) -> None:
    pull = partial(_pulled, tmp_path, labels)
    pull(family="zoo", both=True)
    pull(family="drinks")
    assert (pull(family="drinks", replace=True).removed, _names(own)) == ([], {"small", "small-int8"})
    assert {name: len(family.models) for name, family in scan([own]).families.items()} == {"zoo": 2, "drinks": 1}


def test_what_another_machine_chose_is_chosen_anew(own: Path, labels: Path, tmp_path: Path) -> None:
    (model,) = _pulled(tmp_path, labels).models
    elsewhere = PrecisionChoice(float_ms=2.0, int8_ms=1.0, machine="a board of last year")
    moved = structs.replace(model.manifest, precision_choice=elsewhere)
    model.manifest_path.write_bytes(msgspec.json.encode(moved))
    again = _pulled(tmp_path, labels)
    assert again.added == ["small-int8"]
    assert again.models[0].manifest.precision_choice != elsewhere
    assert _pulled(tmp_path, labels).added == []


@pytest.mark.parametrize(
    ("board", "precision", "added"),
    [("orin", "int8", "small-int8"), ("orin", "fp16", "small"), ("tx2", "int8", "small")],
)
def test_with_tensorrt_nothing_is_timed_and_8_bits_are_pulled_for_int8_engines_alone(
    own: Path, labels: Path, tmp_path: Path, board: str, precision: Precision, added: str
) -> None:
    interpreter = make_interpreter(tmp_path / "python", "8.6", board={"profile": board})
    host = Host(precision=precision, interpreter=str(interpreter))
    config = Config(models=ModelsConfig(backend="tensorrt"), host=host)
    (model,) = _pulled(tmp_path, labels, values=config).models
    assert model.manifest.name == added
    assert model.manifest.precision_choice == PrecisionChoice(machine=Machine().facts().board.value)


@pytest.mark.parametrize(
    ("times_ms", "is_there", "is_chosen"),
    [
        ((10.0, 9.0), False, True),  # 0.9 of the time
        ((10.0, 9.1), False, False),
        ((10.0, 9.1), True, True),  # it was chosen before, and the float model takes 1.1 of its time
        ((9.1, 10.0), True, True),  # 0.91 of its time: not clearly faster
        ((9.0, 10.0), True, False),
    ],
)
def test_8_bits_are_chosen_if_they_are_clearly_faster_and_stay_until_float_is(
    times_ms: tuple[float, float], is_there: bool, is_chosen: bool
) -> None:
    assert is_int8_chosen(*times_ms, is_there=is_there) is is_chosen


@pytest.mark.parametrize("name", ["efficientnet_lite", "mobilenet_v3_small"])
def test_a_name_that_cannot_be_pulled_brings_the_near_one(name: str) -> None:
    meant = {"efficientnet_lite": "efficientnet-lite", "mobilenet_v3_small": "torchvision:mobilenet_v3_small"}[name]
    assert f"did you mean {meant}?" in run("pull", name, status=1)


def _names(folder: Path) -> set[str]:
    zoo = scan([folder])
    return {model.manifest.name for family in zoo.families.values() for model in family.models}


def _pulled(tmp_path: Path, labels: Path, slower: str = "small", **options: Any) -> Pulled:
    """Pull a family of one rung. slower: which of its precisions takes many times as long as the other."""
    pull = Pull(**{"values": Config(), "family": None, "folder": None, **options})
    return add_rungs([_pair(tmp_path, labels, slower)], pull)


def _pair(tmp_path: Path, labels: Path, slower: str) -> RungPair:
    return RungPair(*(_rung(tmp_path, labels, name, 2000 if name == slower else 1) for name in ("small", "small-int8")))


def _rung(folder: Path, labels: Path, name: str, copies: int) -> Rung:
    """One as `efficientnet-lite` has them, with a network of one matrix."""
    onnx = folder / f"{name}.onnx"
    matrix = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    onnx.write_bytes(mean_model(matrix, copies=copies))
    wanted = ModelDescription(
        name=name,
        family=None,
        likely_family="drinks",
        labels=labels_file(labels),
        labels_from=labels,
        spec=SPEC,
        input_px=(16, 16),
        source="published",
        notice="ask",
        tensors_sha256="0" * 64,
        recipe=f"means of {name}",
        origin="means",
    )
    return Rung(onnx, wanted, 16, drawn(16).mean(axis=(2, 3)) @ matrix)


def _relabelled(labels: Path) -> Path:
    labels.write_text("cup\nmug\nglass\n")
    return labels


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
