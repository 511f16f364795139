"""An engine of another key, or a file that is none, is refused, and the next one is served."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jetsel.engines import Backends, EngineFailedError
from jetsel.host_settings import HostSettings
from tests.board.building import MODELS
from tests.board.conftest import Built

XS = MODELS["xs"]


@pytest.fixture
def plan(built: Built) -> Path:
    return Path(built("fp16", "xs")["engine"])


def refusal(host: HostSettings) -> str:
    backends = Backends(host)
    try:
        with pytest.raises(EngineFailedError) as caught:
            backends.open("tensorrt", XS, concurrency=1, threads=1)
    finally:
        backends.close()
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ({"tensorrt": "7.1.3"}, "tensorrt 7.1.3 and not"),
        ({"gpu": "another GPU"}, "gpu another GPU and not"),
        ({"precision": "fp32"}, "precision fp32 and not fp16"),
    ],
    ids=["TensorRT", "GPU", "precision"],
)
def test_an_engine_of_another_key_is_refused_with_the_command_that_builds_it(
    plan: Path, settings: HostSettings, tmp_path: Path, key: dict[str, str], said: str
) -> None:
    record = json.loads(plan.with_suffix(".json").read_text())
    record["key"] |= key
    shutil.copy(plan, tmp_path)
    (tmp_path / plan.with_suffix(".json").name).write_text(json.dumps(record))
    found = refusal(replace(settings, folder=tmp_path))
    assert found.startswith("xs: ")
    assert said in found
    assert "jetsel models build xs" in found
