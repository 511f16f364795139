"""`jetsel models pull` in process: which precision is taken, and what takes the place of what."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from jetsel.base.config import Config
from jetsel.base.config import Models as ModelsConfig
from jetsel.base.host_settings import HostSettings, Precision
from jetsel.base.weights import Head
from jetsel.cli.models.family import Pull, Pulled, add_rungs, is_int8_chosen
from jetsel.power.machine import Machine
from jetsel.zoo import pretrained, scan
from jetsel.zoo.adding import ModelDescription, add_head
from jetsel.zoo.export import Example
from jetsel.zoo.labels import labels_from_names, labels_from_text, read_labels_text
from jetsel.zoo.manifest import PrecisionChoice, Provenance, Tensors
from jetsel.zoo.placing import NewFamily, remove_model, rewrite_manifest
from jetsel.zoo.pretrained import SPEC, PrecisionPair, PretrainedModel, synthetic_images
from tests.contract.tiny import mean_model
from tests.doubles.interpreter import make_interpreter
from tests.unit.cli.model_commands import run


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
    owners = NewFamily("cups", labels_from_names(["cup", "mug"], "images"), "images")
    headed = add_head(backbone, head.content(), 3, owners, own, None)
    remove_model(backbone)
    pulled = _pulled(tmp_path, labels)
    assert (pulled.models[0].manifest.family, pulled.added) == ("drinks", ["small-int8"])
    assert headed.path.is_file(), "which shares the backbone's file"
    assert headed.manifest.provenance.precision_choice is None


def test_the_precision_that_is_faster_here_is_pulled_and_takes_the_place_of_the_other(
    own: Path, labels: Path, tmp_path: Path
) -> None:
    pull = partial(_pulled, tmp_path, labels)
    first = pull(slower="small-int8")
    assert (first.added, first.removed, _names(own)) == (["small"], [], {"small"})
    choice = first.models[0].manifest.provenance.precision_choice
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
    monkeypatch.setattr(pretrained, "write_family", lambda *_, **__: [_pair(tmp_path, labels, "small")])
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
    assert {model.manifest.provenance.precision_choice for model in pull().models} == {None}
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
    rewrite_manifest(model, provenance=structs.replace(model.manifest.provenance, precision_choice=elsewhere))
    again = _pulled(tmp_path, labels)
    assert again.added == ["small-int8"]
    assert again.models[0].manifest.provenance.precision_choice != elsewhere
    assert _pulled(tmp_path, labels).added == []


@pytest.mark.parametrize(
    ("board", "precision", "added"),
    [("orin", "int8", "small-int8"), ("orin", "fp16", "small"), ("tx2", "int8", "small")],
)
def test_with_tensorrt_nothing_is_timed_and_8_bits_are_pulled_for_int8_engines_alone(
    own: Path, labels: Path, tmp_path: Path, board: str, precision: Precision, added: str
) -> None:
    interpreter = make_interpreter(tmp_path / "python", "8.6", board={"profile": board})
    host = HostSettings(precision=precision, interpreter=str(interpreter))
    config = Config(models=ModelsConfig(backend="tensorrt"), host=host)
    (model,) = _pulled(tmp_path, labels, values=config).models
    assert model.manifest.name == added
    assert model.manifest.provenance.precision_choice == PrecisionChoice(machine=Machine().facts().board.value)


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


def _pair(tmp_path: Path, labels: Path, slower: str) -> PrecisionPair:
    return PrecisionPair(
        *(_rung(tmp_path, labels, name, 2000 if name == slower else 1) for name in ("small", "small-int8"))
    )


def _rung(folder: Path, labels: Path, name: str, copies: int) -> PretrainedModel:
    """One as `efficientnet-lite` has them, with a network of one matrix."""
    onnx = folder / f"{name}.onnx"
    matrix = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    onnx.write_bytes(mean_model(matrix, copies=copies))
    wanted = ModelDescription(
        name=name,
        family=None,
        likely_family="drinks",
        labels=labels_from_text(read_labels_text(labels), str(labels)),
        labels_from=labels,
        spec=SPEC,
        input_px=(16, 16),
        tensors=Tensors(sha256="0" * 64, recipe=f"means of {name}"),
        provenance=Provenance(source="published", notice="ask"),
        origin="means",
    )
    return PretrainedModel(onnx, wanted, Example(synthetic_images(16), synthetic_images(16).mean(axis=(2, 3)) @ matrix))
