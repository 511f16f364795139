"""The end of an engine host: with the daemon, however that ends, and without a wait."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from jetsel.base.host_settings import HostSettings
from jetsel.engines.hosted import HostedBackend
from jetsel.engines.hosting.rules import RULES
from tests.processes import children_with
from tests.system.engine_host.models import Make, is_gone, load, pid_of, tiny
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
