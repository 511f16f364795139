"""What a request may know of the time that models take, and what is loaded for the next."""

from __future__ import annotations

import math
from functools import partial

import pytest

from jetsel.engines import OnDemandEngine
from jetsel.runtime import ModelQueue
from jetsel.runtime.forecast import load_for_the_next, outlook
from tests.unit.runtime.driving import TableEngine
from tests.waiting import until


def test_a_load_is_in_a_model_s_time_and_begins_where_it_alone_keeps_it_from_the_deadline() -> None:
    engines = {name: OnDemandEngine(partial(TableEngine, name, 1.0), lambda: None) for name in ("s", "m", "l")}
    queues = {name: ModelQueue(name, engine) for name, engine in engines.items()}
    for (name, queue), run_ms in zip(queues.items(), (2.0, 10.0, 40.0), strict=True):
        queue.prior_ms = (run_ms, 1.0)
        engines[name].load_ms = 100.0
    for name in ("m", "l"):
        engines[name].unload()
    ahead = outlook(queues, 100.03, 100.0, (4, 4), None, on_device=False)
    assert ahead.budget_ms == pytest.approx(30)
    assert ahead.models_ms == {"s": (2.0, 1.0), "m": (110.0, math.hypot(1, 10)), "l": (140.0, math.hypot(1, 10))}
    load_for_the_next(queues, ["s", "l"], ahead)
    assert not engines["m"].is_loaded, "nobody asks for it"
    load_for_the_next(queues, ["s", "m", "l"], ahead)
    until(lambda: engines["m"].is_loaded)
    assert not engines["l"].is_loaded, "it is too slow in any case"
    engines["l"]._failure = "its file is damaged"  # until a moment ago
    load_for_the_next(queues, ["s", "m", "l"], ahead)
    until(lambda: engines["l"].is_loaded)
