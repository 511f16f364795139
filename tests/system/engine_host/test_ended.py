"""An engine host that does not answer in time, and the end of one: with the daemon, however that ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jetsel.base.errors import EngineDiedError
from jetsel.base.host_settings import HostSettings
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosted import HostedBackend
from jetsel.engines.hosting.rules import RULES, Rules
from tests.processes import children_with
from tests.system import hosts
from tests.system.engine_host.models import Make, images, is_gone, is_right, load, pid_of, tiny
from tests.system.hosts import interpreter_after
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow


def test_the_host_ends_with_a_daemon_that_was_killed(tmp_path: Path) -> None:
    weights = tiny(tmp_path)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        backend = HostedBackend("onnxruntime", HostSettings(tmp_path), lambda: None)
        load(backend, weights)
        os.write(theirs, str(pid_of(backend)).encode())
        os.kill(pid_of(backend), signal.SIGSTOP)  # so that it cannot even notice
        signal.pause()
    os.close(theirs)
    host = int(os.read(ours, 100))
    os.close(ours)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until(lambda: is_gone(host))


def test_closing_does_not_wait_for_a_host_that_is_started_again(make: Make, tmp_path: Path) -> None:
    when, begun = tmp_path / "when", tmp_path / "begun"
    python = interpreter_after(tmp_path, f"if [ -e {when} ]; then touch {begun}; sleep 600; fi")
    backend = make(str(python), replace(RULES, hello_s=600.0))
    load(backend, tiny(tmp_path))
    when.touch()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(begun.exists)
    closing = threading.Thread(target=backend.close, daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    until(lambda: not children_with(os.getpid(), "/engines/host"))


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
