"""An engine that is unloaded and loaded again: ONNX Runtime's, by real threads, on a clock that tests set."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError
from jetsel.engines import EngineFailedError, OnDemandEngine, Output
from jetsel.engines.onnx import OnnxEngine
from tests.contract.tiny import CLASSES, HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.waiting import LIMIT_S, until

BATCH = np.ones((1, 3, HEIGHT_PX, WIDTH_PX), np.float32)


class Rig:
    """A model's file, and an engine of it, whose loads take 40 ms by the clock. held: what loads and runs wait for."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tiny.onnx"
        self.weights = matrix_model(np.ones((PIXELS, CLASSES), np.float32), embedding=False)
        self.path.write_bytes(self.weights)
        self.now_s, self.loads, self.changes = 100.0, 0, threading.Semaphore(0)
        self.held: Callable[[], bool] = lambda: True
        self.engine = OnDemandEngine(self.load, self.changes.release, lambda: self.now_s)

    def load(self) -> OnnxEngine:
        self.loads += 1
        assert self.held()
        self.now_s += 0.04
        rig = self

        class Held(OnnxEngine):
            def infer(self, *parts: NDArray[np.float32]) -> Output:
                assert rig.held()
                return super().infer(*parts)

        return Held("tiny", self.path, concurrency=2, threads=1)

    def ended(self) -> None:
        """Wait for the end of a load."""
        assert self.changes.acquire(timeout=LIMIT_S)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def is_in(engine: OnDemandEngine) -> bool:
    """Whether a caller is let in, as the driver asks."""
    return engine.caller_limiter is None or engine.caller_limiter.enter(engine.concurrency)


def test_whoever_comes_while_it_is_unloaded_has_it_loaded_once_and_beside(rig: Rig) -> None:
    engine = rig.engine
    assert (engine.load_due_ms, engine.load_ms) == (0.0, pytest.approx(40))
    assert engine.unload()
    assert not engine.unload(), "it is already"
    assert engine.load_due_ms == pytest.approx(40)
    assert (engine.unavailable, engine.is_loaded) == (None, False)
    gate = threading.Event()
    rig.held = lambda: gate.wait(LIMIT_S)
    callers = [threading.Thread(target=is_in, args=(engine,)) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(LIMIT_S)
    assert not is_in(engine), "nobody waits inside"
    until(lambda: rig.loads == 2)
    rig.now_s += 0.03
    assert engine.load_due_ms == pytest.approx(10)
    gate.set()
    rig.ended()
    assert is_in(engine)
    assert engine.infer(BATCH).logits.tolist() == [[PIXELS] * CLASSES]
    assert rig.loads == 2
    assert engine.load_ms == pytest.approx(70)


def test_it_is_not_unloaded_under_a_run(rig: Rig) -> None:
    gate, inside = threading.Event(), threading.Event()
    rig.held = lambda: inside.set() is None and gate.wait(LIMIT_S)
    found: list[Output] = []
    runner = threading.Thread(target=lambda: found.append(rig.engine.infer(BATCH)))
    runner.start()
    assert inside.wait(LIMIT_S)
    assert not rig.engine.unload()
    gate.set()
    runner.join(LIMIT_S)
    assert len(found) == 1
    assert rig.engine.unload()
    with pytest.raises(EngineDiedError, match="unloaded"):
        rig.engine.infer(BATCH)


def test_what_is_loaded_after_it_was_closed_is_freed_and_it_is_loaded_no_more(rig: Rig) -> None:
    engine, gate = rig.engine, threading.Event()
    engine.unload()
    rig.held = lambda: gate.wait(LIMIT_S)
    engine.request_load()
    engine.close()
    gate.set()
    rig.ended()
    assert not engine.is_loaded
    engine.request_load()
    assert not is_in(engine)
    assert rig.loads == 2
    with pytest.raises(EngineFailedError, match="closed"):
        engine.infer(BATCH)
