"""How one generation follows another, on real models: what is freed, when, and whatever breaks on the way."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.config import Config, Models, Power
from jetsel.daemon import serving as module
from jetsel.daemon.generation import Generation, build
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.serving import Serving
from jetsel.engines import Backends, Engine
from jetsel.errors import JetselError
from tests.unit.daemon.families import put_family
from tests.unit.daemon.test_generation import BATCH

LIMIT_S = 60.0


class Rig:
    """A daemon's serving without its socket; `config` is what a reload reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = put_family(folder, "cats", "cat-s", "cat-l")
        self.config = self.of()
        self.metering = Metering(Power(sensor="none"))
        backends = Backends()
        first = build(self.config)
        first.load(backends)
        self.serving = Serving(
            self.config, first, backends, self.metering, lambda: self.config, threading.Event(), lambda *_: None
        )

    def of(self, **models: object) -> Config:
        return Config(models=Models(starter=False, paths=[str(self.folder)], **models))  # type: ignore[arg-type]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "cats")
    yield made
    made.metering.stop()


def engine(generation: Generation, name: str = "cat-l") -> Engine:
    found = generation.families["cats"].driver.lanes[name].engine
    assert found is not None
    return found


def is_freed(found: Engine) -> bool:
    try:
        found.infer(BATCH)
    except JetselError as error:
        return "closed" in str(error)
    return False


def test_a_request_that_hangs_keeps_no_reload_from_ending_and_its_models_go_when_it_has_ended(rig: Rig) -> None:
    serving = rig.serving
    serving.linger_s = 0.05
    hung = serving.enter()
    old = engine(hung)
    rig.config = rig.of(threads=2)
    left = "1 requests that began before are under way still, and are answered as they began"
    assert serving.reload() == ["[models]", left]
    assert serving.generation is not hung
    assert hung in serving.standing, "its request runs on"
    assert serving.reload() == [], "the next one waits for it no more"
    assert not is_freed(old)
    hung.leave()
    give_up_s = time.monotonic() + LIMIT_S
    while hung in serving.standing or not is_freed(old):
        assert time.monotonic() < give_up_s
        time.sleep(0.01)
    assert serving.standing == (serving.generation,)
    assert not is_freed(engine(serving.generation))


def test_a_model_that_a_hanging_request_shares_is_not_freed_under_it(rig: Rig) -> None:
    serving = rig.serving
    serving.linger_s = 0.05
    hung = serving.enter()
    shared = engine(hung)
    serving.reload()  # takes it over
    rig.config = rig.of(only=["cat-s"])
    assert "model cat-l removed" in serving.reload()
    assert not is_freed(shared), "the request that hangs may run it still"
    hung.leave()


def test_other_settings_of_models_reload_only_what_they_change(rig: Rig) -> None:
    before = engine(rig.serving.generation, "cat-s")
    rig.config = rig.of(only=["cat-s"])
    rig.serving.reload()
    assert engine(rig.serving.generation, "cat-s") is before


@pytest.mark.parametrize("broken", ["changes", "metering"])
def test_a_defect_before_the_new_generation_serves_leaves_the_old_one_and_frees_the_new(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    serving, before, made = rig.serving, rig.serving.generation, list[Generation]()

    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    def building(*arguments: object) -> Generation:
        made.append(build(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(module, "build", building)
    if broken == "changes":
        monkeypatch.setattr(module, "changes", fail)
    else:
        monkeypatch.setattr(rig.metering, "serve", fail)
    rig.config = rig.of(threads=2)
    with pytest.raises(RuntimeError):
        serving.reload()
    (following,) = made
    assert (serving.generation, serving.standing) == (before, (before,))
    assert is_freed(engine(following))
    assert not is_freed(engine(before))


def test_threads_take_turns_faster_during_a_reload_and_as_usual_after_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual_s, during_s = sys.getswitchinterval(), list[float]()

    def building(*arguments: object) -> Generation:
        during_s.append(sys.getswitchinterval())
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "build", building)
    rig.serving.reload()
    rig.config = rig.of(only=["nobody"])
    with pytest.raises(JetselError):
        rig.serving.reload()
    assert during_s == pytest.approx([module.TURN_S] * 2)
    assert sys.getswitchinterval() == usual_s > module.TURN_S
