"""The daemon's own request: which model it asks, and what counts as its answer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jetsel.base.config import Config, Models
from jetsel.base.errors import InternalError, ModelUnavailableError
from jetsel.daemon.job import Job
from jetsel.daemon.snapshot import Current, load, read_snapshot
from jetsel.daemon.watchdog import Probe
from jetsel.engines import Backends, OnDemandEngine
from tests.unit.daemon.families import put_family


@pytest.fixture
def begun() -> list[Job]:
    """What the probe has had made."""
    return []


@pytest.fixture
def probe(tmp_path: Path, begun: list[Job]) -> Probe:
    folder = put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")
    (folder / "cat-s.onnx").write_bytes(b"damaged")
    snapshot, backends = read_snapshot(Config(models=Models(starter=False, paths=[str(folder)]))), Backends()
    load(snapshot, backends, lambda *_: None, threading.Event())
    return Probe(Current(snapshot), backends, begun.append)


def test_it_asks_the_cheapest_model_that_runs_once_at_a_time(probe: Probe, begun: list[Job]) -> None:
    assert "just begun" in str(probe.ask())
    assert "has waited" in str(probe.ask())
    assert [job.policy.name for job in begun] == ["single:cat-l"]


@pytest.mark.parametrize("outcome", ["ok", ModelUnavailableError.code])
def test_an_answer_or_a_model_that_cannot_run_shows_that_the_daemon_works(probe: Probe, outcome: str) -> None:
    probe.ask()
    probe.over(outcome)
    assert probe.ask() is None
    assert probe.ask() is not None, "the next time it is asked anew"


def test_it_asks_no_model_that_is_unloaded(probe: Probe, begun: list[Job]) -> None:
    snapshot = probe._current.snapshot
    (engine,) = snapshot.engines
    assert isinstance(engine, OnDemandEngine)
    assert engine.unload()
    probe.ask()
    assert [job.policy.name for job in begun] == ["single:cat-s"], "unavailable: that is soon answered"
    del snapshot.families["cats"].models["cat-s"]
    probe.over(ModelUnavailableError.code)
    assert probe.ask() is None
    assert probe.ask() is None, "none is left to ask"
    assert len(begun) == 1
    assert not engine.is_loaded


def test_a_defect_is_no_answer_and_it_is_asked_again(probe: Probe, begun: list[Job]) -> None:
    probe.ask()
    probe.over(InternalError.code)
    assert "defect" in str(probe.ask())
    assert len(begun) == 2
