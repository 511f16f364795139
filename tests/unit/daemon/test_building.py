"""What the daemon builds at its start: what is missing alone, one after the other, told with its number."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.config import Config, Host, Models
from jetsel.daemon.building import Candidate, build_at_start, on_tensorrt
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


def test_only_what_is_missing_is_built_and_counted(family: Family, config: Config) -> None:
    told: list[tuple[int, int, str]] = []
    build_at_start(config, candidates(family, config, "s"), Drawn(), lambda *said: told.append(said))
    assert told == [(1, 1, "s")]
    told.clear()
    outcomes = build_at_start(
        config, candidates(family, config, "xs", "s", "m"), Drawn(), lambda *said: told.append(said)
    )
    assert told == [(1, 2, "xs"), (2, 2, "m")]
    assert [(outcome.was_built, outcome.plan is not None) for outcome in outcomes] == [
        (True, True),
        (False, True),
        (True, True),
    ]


def test_one_that_fails_is_told_in_the_log_and_the_rest_are_built(
    family: Family, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    family.models[0].path.write_bytes(b"damaged")
    with caplog.at_level(logging.INFO, "jetsel.models"):
        outcomes = build_at_start(config, candidates(family, config, "xs", "s"), Drawn(), lambda *_: None)
    assert [outcome.plan is None for outcome in outcomes] == [True, False]
    assert "sha256" in str(outcomes[0].reason)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert errors[0].startswith("not built: ")
    assert "building 2 of 2: s" in caplog.text


def test_where_no_host_starts_nothing_is_built_and_the_log_says_why(
    family: Family, config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = make_interpreter(tmp_path / "bare", None)
    lacking = Config(models=config.models, host=Host(interpreter=str(bare), engines=str(tmp_path / "engines")))
    assert build_at_start(lacking, candidates(family, lacking, "xs"), Drawn(), lambda *_: None) == []
    assert "no engine is built: " in caplog.text
    assert not (tmp_path / "engines").exists()


def test_a_daemon_that_stops_builds_no_further(family: Family, config: Config) -> None:
    stop = threading.Event()
    outcomes = build_at_start(config, candidates(family, config, "xs", "s", "m"), Drawn(), lambda *_: stop.set(), stop)
    assert len(outcomes) == 1
    assert outcomes[0].plan is not None or "was stopped" in str(outcomes[0].reason)
