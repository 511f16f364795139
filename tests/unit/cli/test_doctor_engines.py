"""What `jetsel doctor` says of built engines: which stand, why another does not fit, and what builds it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jetsel.cli.doctoring.engines import engines
from jetsel.cli.doctoring.finding import Subject
from jetsel.config import Config, Host, Models
from jetsel.engines.building.plans import wanted_key
from jetsel.weights import Weights
from jetsel.zoo import STARTER
from jetsel.zoo.store import scan
from tests.unit.cli.test_doctor import BAD, GOOD, TX2, by_name, subject
from tests.unit.engines.building.test_plans import put

ABOUT = {"version": "8.2.1.8", "gpu": TX2}


def looked_at(folder: Path, **host: bool) -> Subject:
    """An installation that runs xs and xl of the starter family on TensorRT; engines lie in `folder`."""
    models = Models(backends={"xs": "tensorrt", "xl": "tensorrt"})
    return subject(Config(models=models, host=Host(engines=str(folder), **host)), [GOOD])


def weights_of(name: str) -> Weights:
    (family,) = scan([STARTER]).families.values()
    (model,) = [model for model in family.models if model.manifest.name == name]
    return model.weights(len(family.labels.names))


def test_an_engine_that_fits_is_told_and_the_command_for_one_that_is_missing(tmp_path: Path) -> None:
    path = put(tmp_path, wanted_key(weights_of("xl"), Host(), ABOUT))
    found = by_name(engines(looked_at(tmp_path)))
    assert list(found) == ["xs", "xl"]  # only those on tensorrt
    assert found["xl"].state == "ok"
    assert found["xl"].said == f"{path}: fp16, 0.0 MB, built 2026-11-21T12:00:00+00:00"
    assert found["xs"].state == "failed"
    assert found["xs"].said == "no engine of it was built on this device"
    assert found["xs"].repair == "run: jetsel models build xs"


def test_an_engine_for_another_tensorrt_says_so(tmp_path: Path) -> None:
    put(tmp_path, wanted_key(weights_of("xl"), Host(), {**ABOUT, "version": "8.0.1.6"}))
    found = by_name(engines(looked_at(tmp_path)))["xl"]
    assert found.state == "failed"
    assert found.said == "its engine was built for TensorRT 8.0.1.6, and this board has 8.2.1.8"


def test_what_the_daemon_will_build_at_its_start_is_a_warning(tmp_path: Path) -> None:
    found = by_name(engines(looked_at(tmp_path, build_at_start=True)))
    assert {finding.state for finding in found.values()} == {"warning"}
    assert "at its start" in found["xs"].said


def test_without_models_on_tensorrt_none_is_needed() -> None:
    (found,) = engines(subject(probes=[GOOD]))
    assert (found.state, found.repair) == ("info", None)


def test_without_a_host_a_gpu_or_a_family_nothing_is_claimed(tmp_path: Path) -> None:
    blind = msgspec.structs.replace(GOOD, gpu=None)
    for probe, said in ((BAD, "no interpreter here can host TensorRT"), (blind, "the host sees no GPU")):
        looked = looked_at(tmp_path)
        looked.probes = {"tensorrt": [probe], "onnxruntime": []}
        (found,) = engines(looked)
        assert (found.state, found.said) == ("info", f"not known: {said}")
    (found,) = engines(subject(Config(models=Models(only=["nobody"])), [GOOD]))
    assert (found.state, found.said) == ("info", "not known: no daemon would start")
