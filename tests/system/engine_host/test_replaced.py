"""An engine host that dies, whatever it dies of: another takes its place, and no answer is wrong."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from jetsel.base.errors import EngineDiedError
from jetsel.engines.hosting.rules import Rules
from tests.contract.tiny import PIXELS
from tests.system import hosts
from tests.system.engine_host.models import MATRIX, Make, images, is_gone, is_right, load, pid_of, tiny
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow


def test_an_idle_host_that_dies_is_reported_once_and_its_models_are_loaded_again(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = threading.Semaphore(0)
    backend = make(changed=changes.release)
    one, other = load(backend, tiny(tmp_path, "one")), load(backend, tiny(tmp_path, "other", -MATRIX))
    first = pid_of(backend)
    caplog.clear()
    os.kill(first, signal.SIGSEGV)
    until(lambda: one.unavailable is None and other.unavailable is None and pid_of(backend) != first)
    assert is_right(one)
    assert np.allclose(other.infer(images()).logits, -images().reshape(1, PIXELS) @ MATRIX, atol=1e-5)
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == [f"engine host {first} ended while idle: it closed the connection (ended by SIGSEGV)"]
    until(lambda: any("models loaded: 2" in record.getMessage() for record in caplog.records))
    assert changes.acquire(timeout=LIMIT_S), "who waits for the model is told"


@pytest.mark.parametrize("body", hosts.BODIES)
def test_whatever_comes_instead_of_an_answer_the_request_may_be_sent_again(
    make: Make, tmp_path: Path, body: str
) -> None:
    change = hosts.ON_INFER.format(once=str(tmp_path / "once"), body=hosts.BODIES[body])
    backend = make(hosts.interpreter(tmp_path, change))
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    with pytest.raises(EngineDiedError) as caught:
        engine.infer(images())
    assert (caught.value.code, caught.value.retry) == ("engine-died", True)
    until(lambda: engine.unavailable is None)
    assert pid_of(backend) != first
    assert is_gone(first)
    assert is_right(engine)


def test_a_restart_for_which_there_is_no_socket_is_tried_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make(rules=Rules(first_pause_s=0.01))
    engine = load(backend, tiny(tmp_path))
    failures = iter([True, True, False])
    pair = socket.socketpair

    def without() -> tuple[socket.socket, socket.socket]:
        if next(failures, False):
            raise OSError(errno.EMFILE, "Too many open files")
        return pair()

    monkeypatch.setattr(socket, "socketpair", without)
    first = backend.supervisor.process
    os.kill(pid_of(backend), signal.SIGKILL)
    until(lambda: backend.supervisor.process not in (None, first) and engine.unavailable is None)
    assert is_right(engine)
    assert sum("Too many open files" in record.getMessage() for record in caplog.records) == 2
