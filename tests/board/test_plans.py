"""An engine of another key, or a file that is none, is refused, and the next one is served."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.config import Host
from jetsel.engines import Backends, EngineFailedError
from jetsel.engines.hosted import HostedBackend
from tests.board.building import MODELS
from tests.board.conftest import Built
from tests.contract.opening import Models, photographs

XS = MODELS["xs"]


@pytest.fixture
def plan(built: Built) -> Path:
    return Path(built("fp16", "xs")["engine"])


def refusal(host: Host) -> str:
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
        ({"tensorrt": "7.1.3"}, "built for TensorRT 7.1.3, and this board has"),
        ({"gpu": "another GPU"}, "built on the GPU another GPU, and this one is"),
        ({"precision": "fp32"}, "built as fp32, and [host] precision is fp16"),
    ],
    ids=["TensorRT", "GPU", "precision"],
)
def test_an_engine_of_another_key_is_refused_with_the_command_that_builds_it(
    plan: Path, settings: Host, tmp_path: Path, key: dict[str, str], said: str
) -> None:
    record = json.loads(plan.with_suffix(".json").read_text())
    record["key"] |= key
    shutil.copy(plan, tmp_path)
    (tmp_path / plan.with_suffix(".json").name).write_text(json.dumps(record))
    found = refusal(msgspec.structs.replace(settings, engines=str(tmp_path)))
    assert found.startswith("xs: ")
    assert said in found
    assert "jetsel models build xs" in found


def ask_to_load(models: Models, path: Path, **changes: Any) -> dict[str, Any]:
    """What the host itself answers, whatever the daemon would have refused before."""
    backend = models.backends.get("tensorrt")
    assert isinstance(backend, HostedBackend)
    request = {"model": 99, "name": "xs", "path": str(path), "sha256": None, "classes": 100, "input_px": [64, 64]}
    found: dict[str, Any] = backend.supervisor.ask(
        backend.supervisor.start(), "load", {**request, "threads": 1, **changes}, 120, "loading xs"
    )
    return found


def test_the_host_itself_refuses_an_engine_that_was_made_for_another(plan: Path, models: Models) -> None:
    theirs = {"tensorrt": "7.1.3", "gpu": "another GPU", "compute_capability": "5.3"}
    found = ask_to_load(models, plan, made_for=theirs)
    assert (found["ok"], found["code"]) == (False, "mismatch")
    assert "jetsel models build xs" in found["message"]


def test_a_file_that_is_no_engine_fails_alone(models: Models, tmp_path: Path) -> None:
    engine = models.open(XS)
    before = engine.infer(photographs(1)).logits
    (tmp_path / "xs.plan").write_bytes(b"no engine at all" * 1000)
    found = ask_to_load(models, tmp_path / "xs.plan")
    assert (found["ok"], found["code"]) == (False, "load-failed")
    assert engine.infer(photographs(1)).logits == pytest.approx(before, abs=1e-3)
