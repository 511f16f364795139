"""An engine host that does not answer: killed once its limit is over, and no sooner."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from jetsel.base.errors import EngineDiedError
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.rules import Rules
from tests.system import hosts
from tests.system.engine_host.models import Make, images, is_gone, is_right, load, pid_of, tiny
from tests.waiting import until

pytestmark = pytest.mark.slow


def test_a_hung_run_is_killed_once_its_limit_is_over(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make()
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    os.kill(first, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(EngineDiedError):
        engine.infer(images())
    assert time.monotonic() - began >= 2.0, "no sooner than its limit"
    until(lambda: engine.unavailable is None)
    assert is_gone(first)
    assert is_right(engine)
    assert sum("was killed" in record.getMessage() for record in caplog.records) == 1


def test_a_run_may_take_twenty_times_as_long_as_usual_and_no_longer(make: Make, tmp_path: Path) -> None:
    seconds = tmp_path / "seconds"
    seconds.write_text("0.15")
    change = hosts.SLOW.format(seconds=str(seconds))
    backend = make(hosts.interpreter(tmp_path, change))
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    seconds.write_text("2.5")  # of 20 times 0.15 s at the least
    assert is_right(engine)
    assert pid_of(backend) == first
    seconds.write_text("600")
    with pytest.raises(EngineDiedError):
        engine.infer(images())
    seconds.write_text("0")
    until(lambda: engine.unavailable is None)
    assert pid_of(backend) != first


def test_an_idle_host_that_leaves_a_ping_unanswered_is_killed(make: Make, tmp_path: Path) -> None:
    change = hosts.interpreter(tmp_path, hosts.SILENT_PING)
    backend = make(change, Rules(ping_every_s=0.2, ping_limit_s=0.3))
    load(backend, tiny(tmp_path))
    first = pid_of(backend)
    until(lambda: is_gone(first))


def test_a_host_that_never_says_hello_is_killed_and_the_reason_told(make: Make, tmp_path: Path) -> None:
    backend = make(hosts.interpreter(tmp_path, hosts.NEVER_HELLO), Rules(hello_s=0.5))
    with pytest.raises(EngineFailedError, match=r"did not start up: it did not answer in time .*jetsel doctor"):
        load(backend, tiny(tmp_path))
