"""A host that is killed, or stopped in the middle of its work, is replaced, and answers as the first one did."""

from __future__ import annotations

import logging
import os
import signal

import pytest

from jetsel.errors import EngineDiedError
from tests.board.building import MODELS
from tests.contract.opening import Models, photographs
from tests.waiting import until

LIMIT_S = 180.0  # a slow card holds TensorRT's libraries


def pid_of(models: Models) -> int:
    return int(models.backends.get("tensorrt").supervisor.process.pid)  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_lost_host_is_replaced_and_answers_as_before(
    models: Models, caplog: pytest.LogCaptureFixture, number: signal.Signals
) -> None:
    engines = [models.open(MODELS[name]) for name in ("xs", "l")]
    batch = photographs(2)
    before = [engine.infer(batch).logits for engine in engines]
    first = pid_of(models)
    os.kill(first, number)
    with pytest.raises(EngineDiedError):
        engines[0].infer(batch)
    for engine, logits in zip(engines, before, strict=True):
        until(lambda engine=engine: engine.unavailable is None, LIMIT_S)  # type: ignore[misc]
        assert engine.infer(batch).logits == pytest.approx(logits, abs=1e-3)
    assert pid_of(models) != first
    ended = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(ended) == 1, "it is told once"
