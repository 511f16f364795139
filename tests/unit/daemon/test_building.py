"""What is built: what is missing alone, one after the other, told with its number."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.config import Config, Host, Models, host_settings
from jetsel.daemon.building import Candidate, build_missing, on_tensorrt
from jetsel.engines.building.builder import Builder
from jetsel.image import Photograph
from jetsel.zoo import STARTER, Family, scan
from tests.doubles.interpreter import make_interpreter
from tests.system.daemons import drawn


class Drawn:
    """Some pictures."""

    source = "drawings"

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[Photograph]:
        for seed in range(3):
            yield Photograph(drawn(seed), 160, 120)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_interpreter(tmp_path_factory.mktemp("python") / "trt82", "8.2")


@pytest.fixture
def family(tmp_path: Path) -> Family:
    """The starter family in a folder of its own, where it can be damaged."""
    shutil.copytree(STARTER, tmp_path / "models")
    return scan([tmp_path / "models"]).families["starter"]


@pytest.fixture
def config(python: Path, tmp_path: Path) -> Config:
    return Config(
        models=Models(backend="tensorrt"), host=Host(interpreter=str(python), engines=str(tmp_path / "engines"))
    )


def candidates(family: Family, config: Config, *names: str) -> list[Candidate]:
    models = [model for model in family.models if model.manifest.name in names]
    return on_tensorrt(family.name, models, len(family.labels.names), config)


def test_models_of_other_backends_are_not_built(family: Family) -> None:
    config = Config(models=Models(backends={"s": "tensorrt", "m": "onnxruntime"}))
    found = on_tensorrt("starter", family.models, 100, config)
    assert [(one.family, one.name, one.classes) for one in found] == [("starter", "s", 100)]


def built(
    family: Family, config: Config, *names: str
) -> tuple[list[tuple[int, int, str]], list[tuple[bool, str | None]]]:
    """What is told before each build, and of each model whether it was built now and what was wrong."""
    told: list[tuple[int, int, str]] = []
    outcomes = build_missing(
        Builder(host_settings(config.host)),
        candidates(family, config, *names),
        Drawn(),
        lambda *said: told.append(said),
        lambda: None,
    )
    found = [(outcome.was_built, outcome.reason) for outcome in outcomes]
    return told, found


def test_only_what_is_missing_is_built_and_counted(family: Family, config: Config) -> None:
    assert built(family, config, "s") == ([(1, 1, "s")], [(True, None)])
    told, found = built(family, config, "xs", "s", "m")
    assert told == [(1, 2, "xs"), (2, 2, "m")]
    assert found == [(True, None), (False, None), (True, None)]


def test_one_that_fails_has_its_reason_and_the_rest_are_built(family: Family, config: Config) -> None:
    family.models[0].path.write_bytes(b"damaged")
    _, ((was_built, reason), other) = built(family, config, "xs", "s")
    assert (was_built, other) == (False, (True, None))
    assert "sha256" in str(reason)
