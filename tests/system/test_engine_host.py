"""An engine host that ends, hangs, does not start or dies: it is replaced, and no answer is wrong."""

import errno
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError
from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosted import HostedBackend, HostedEngine
from jetsel.engines.hosting.residents import RULES, Rules
from tests.contract.opening import weights_of
from tests.contract.tiny import CLASSES, HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.processes import children_with, ended
from tests.system import hosts
from tests.system.hosts import interpreter_after
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow
MATRIX = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)

Make = Callable[..., HostedBackend]


def tiny(folder: Path, name: str = "tiny", matrix: NDArray[np.float32] = MATRIX) -> Weights:
    path = folder / f"{name}.onnx"
    path.write_bytes(matrix_model(matrix))
    return weights_of(path)


def load(backend: HostedBackend, weights: Weights) -> HostedEngine:
    return backend.open(weights, concurrency=1, threads=1)


def images(count: int = 1, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)


def is_right(engine: HostedEngine, seed: int = 0) -> bool:
    batch = images(seed=seed)
    return np.allclose(engine.infer(batch).logits, batch.reshape(1, PIXELS) @ MATRIX, atol=1e-5)


def pid_of(backend: HostedBackend) -> int:
    process = backend.supervisor.process
    return process.pid


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def make() -> Iterator[Make]:
    """Make backends that end with the test."""

    def begin(
        interpreter: str | None = None,
        rules: Rules = RULES,
        changed: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> HostedBackend:
        host = HostSettings(engines="/nonexistent", interpreter=interpreter, **settings)
        return HostedBackend("onnxruntime", host, changed, rules)

    with ended(begin, HostedBackend.close) as begun:
        yield begun


def test_the_host_ends_with_a_daemon_that_was_killed(tmp_path: Path) -> None:
    weights = tiny(tmp_path)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        backend = HostedBackend("onnxruntime", HostSettings(engines=str(tmp_path)), lambda: None)
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


def test_a_start_that_failed_is_not_waited_for_again_by_the_next_model_and_later_it_is(
    make: Make, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    change = f'open({str(starts)!r}, "a").write("x"); os.path.exists({str(tmp_path / "mended")!r}) or sys.exit(1)'
    backend = make(hosts.interpreter(tmp_path, change), Rules(same_failure_s=1.0))
    for _ in range(3):
        with pytest.raises(EngineFailedError, match="exit status 1"):
            load(backend, tiny(tmp_path))
    assert starts.read_text() == "x"
    (tmp_path / "mended").touch()
    until(lambda: has_loaded(backend, tmp_path))


def has_loaded(backend: HostedBackend, folder: Path) -> bool:
    try:
        return is_right(load(backend, tiny(folder)))
    except EngineFailedError:
        return False


def test_an_interpreter_that_ends_at_once_or_is_not_there_is_told(make: Make, tmp_path: Path) -> None:
    illegal = hosts.interpreter_after(tmp_path, "kill -ILL $$")
    with pytest.raises(EngineFailedError, match="SIGILL"):
        load(make(str(illegal)), tiny(tmp_path))
    with pytest.raises(EngineFailedError, match="python-nowhere: No such file or directory; see: jetsel doctor"):
        load(make(str(tmp_path / "python-nowhere")), tiny(tmp_path))


def test_hosts_that_are_killed_while_they_load_leave_no_model_out_that_loads_in_between(
    make: Make, tmp_path: Path
) -> None:
    backend = make(rules=Rules(first_pause_s=0.01))
    engines = [load(backend, tiny(tmp_path, name)) for name in ("a", "b", "c")]

    def kill_and_wait_for(some: list[HostedEngine]) -> None:
        process = backend.supervisor.process
        os.kill(pid_of(backend), signal.SIGKILL)
        until(lambda: backend.supervisor.process not in (None, process) and all(e.unavailable is None for e in some))

    for _ in range(5):
        kill_and_wait_for(engines[:1])  # the others are being loaded, or about to be
        kill_and_wait_for(engines)
    assert is_right(engines[0])


def test_a_model_that_would_leave_less_than_the_reserve_is_refused_and_others_are_asked_for_again(
    make: Make, tmp_path: Path
) -> None:
    backend = make(reserve_mb=10**6)
    with pytest.raises(EngineFailedError, match=r"tiny: .* MB would be left after loading, less than the reserve"):
        load(backend, tiny(tmp_path))
    assert pid_of(backend)


def test_a_model_that_kills_its_host_when_it_is_loaded_again_is_left_out_and_the_rest_serve(
    make: Make, tmp_path: Path
) -> None:
    change = hosts.DIES_LOADING.format(name="bad", when=str(tmp_path / "now"))
    backend = make(hosts.interpreter(tmp_path, change), Rules(first_pause_s=0.01))
    good, bad = load(backend, tiny(tmp_path, "good")), load(backend, tiny(tmp_path, "bad"))
    (tmp_path / "now").touch()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(lambda: "died 2 times while loading it" in str(bad.unavailable) and good.unavailable is None)
    assert is_right(good)
    assert not bad.is_restarting
    with pytest.raises(EngineFailedError, match="died 2 times"):
        bad.infer(images())


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
