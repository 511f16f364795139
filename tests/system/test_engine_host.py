"""The engine host and its supervisor: real processes, killed, stopped and changed on purpose."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import signal
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.config import Host
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosted import HostedBackend, HostedEngine
from jetsel.engines.hosting.process import HostProcess
from jetsel.engines.hosting.rules import RULES, Rules
from jetsel.errors import EngineDiedError
from jetsel.weights import Weights
from jetsel.zoo import STARTER
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.processes import children_with
from tests.system import hosts
from tests.waiting import until

CLASSES = 4
MATRIX = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)
LIMIT_S = 30.0  # for what takes milliseconds on an idle machine

Make = Callable[..., HostedBackend]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make backends that end with the test."""
    made: list[HostedBackend] = []

    def begin(
        host: Host | None = None, rules: Rules = RULES, changed: Callable[[], None] = lambda: None
    ) -> HostedBackend:
        made.append(HostedBackend("onnxruntime", host or Host(), changed, rules))
        return made[-1]

    yield begin
    for backend in made:
        backend.close()


def tiny(folder: Path, name: str = "tiny", matrix: NDArray[np.float32] = MATRIX) -> Weights:
    path = folder / f"{name}.onnx"
    path.write_bytes(matrix_model(matrix))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Weights(name, path, digest, HEIGHT_PX, WIDTH_PX, matrix.shape[1])


def load(backend: HostedBackend, weights: Weights) -> HostedEngine:
    return backend.open(weights, concurrency=1, threads=1)


def images(count: int = 1, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)


def is_right(engine: HostedEngine, seed: int = 0) -> bool:
    batch = images(seed=seed)
    return np.allclose(engine.infer(batch).logits, batch.reshape(1, PIXELS) @ MATRIX, atol=1e-5)


def pid_of(backend: HostedBackend) -> int:
    process = backend.supervisor.process
    assert process is not None
    return process.pid


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_killed_host_is_replaced_and_its_models_are_loaded_again(make: Make, tmp_path: Path) -> None:
    backend = make()
    one, other = load(backend, tiny(tmp_path, "one")), load(backend, tiny(tmp_path, "other", -MATRIX))
    first = pid_of(backend)
    os.kill(first, signal.SIGKILL)
    until(lambda: one.unavailable is None and other.unavailable is None and pid_of(backend) != first)
    assert is_right(one)
    assert np.allclose(other.infer(images()).logits, -images().reshape(1, PIXELS) @ MATRIX, atol=1e-5)


def test_an_idle_host_that_dies_is_noticed_and_reported_once(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = threading.Semaphore(0)
    backend = make(changed=changes.release)
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    caplog.clear()
    os.kill(first, signal.SIGSEGV)
    until(lambda: engine.unavailable is None and pid_of(backend) != first)
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == [f"engine host {first} ended while idle: it closed its end (ended by SIGSEGV)"]
    until(lambda: any("models loaded: 1" in record.getMessage() for record in caplog.records))
    assert changes.acquire(timeout=LIMIT_S), "who waits for the model is told"


@pytest.mark.parametrize("body", hosts.BODIES)
def test_whatever_comes_instead_of_an_answer_the_request_may_be_sent_again(
    make: Make, tmp_path: Path, body: str
) -> None:
    change = hosts.ON_INFER.format(once=str(tmp_path / "once"), body=hosts.BODIES[body])
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, change)))
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    with pytest.raises(EngineDiedError) as caught:
        engine.infer(images())
    assert (caught.value.code, caught.value.retry) == ("engine-died", True)
    until(lambda: engine.unavailable is None)
    assert pid_of(backend) != first
    assert is_gone(first)
    assert is_right(engine)


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
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, change)))
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


def test_a_hung_host_that_was_idle_before_and_ends_slowly_is_replaced(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = make(rules=Rules(ping_every_s=0.5))
    engine = load(backend, tiny(tmp_path))
    end = HostProcess._end

    def slowly(process: HostProcess, patience_s: float) -> str:
        process._release()
        time.sleep(1.0)  # as a process does that holds a GPU's memory
        return end(process, patience_s)

    monkeypatch.setattr(HostProcess, "_end", slowly)
    first = pid_of(backend)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(EngineDiedError):
        engine.infer(images())
    until(lambda: engine.unavailable is None)
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


def test_an_input_is_copied_once(make: Make, tmp_path: Path) -> None:
    side_px = 224
    path = tmp_path / "large.onnx"
    path.write_bytes(matrix_model(np.zeros((3 * side_px**2, 2), np.float32), embedding=False, side_px=side_px))
    weights = Weights("large", path, hashlib.sha256(path.read_bytes()).hexdigest(), side_px, side_px, 2)
    engine = load(make(), weights)
    batch = np.zeros((1, 3, side_px, side_px), np.float32)
    engine.infer(batch, batch)
    tracemalloc.start()
    try:
        engine.infer(batch, batch)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < batch.nbytes / 2, "nothing but the shared memory holds it a second time"


def test_hosts_that_are_killed_while_they_load_leave_no_model_out_that_loads_in_between(
    make: Make, tmp_path: Path
) -> None:
    backend = make(rules=Rules(first_pause_s=0.01, most_deaths=100))
    engines = [load(backend, tiny(tmp_path, name)) for name in ("a", "b", "c")]

    def kill_and_wait_for(some: list[HostedEngine]) -> None:
        process = backend.supervisor.process
        os.kill(pid_of(backend), signal.SIGKILL)
        until(lambda: backend.supervisor.process not in (None, process) and all(e.unavailable is None for e in some))

    for _ in range(5):
        kill_and_wait_for(engines[:1])  # the others are being loaded, or about to be
        kill_and_wait_for(engines)
    assert is_right(engines[0])


def test_an_idle_host_that_leaves_a_ping_unanswered_is_killed(make: Make, tmp_path: Path) -> None:
    change = hosts.interpreter(tmp_path, hosts.SILENT_PING)
    backend = make(Host(interpreter=change), Rules(ping_every_s=0.2, ping_limit_s=0.3))
    load(backend, tiny(tmp_path))
    first = pid_of(backend)
    until(lambda: is_gone(first))


def test_a_ping_that_is_answered_changes_nothing(make: Make, tmp_path: Path) -> None:
    backend = make(rules=Rules(ping_every_s=0.05))
    engine = load(backend, tiny(tmp_path))
    first = pid_of(backend)
    time.sleep(0.5)
    assert pid_of(backend) == first
    assert is_right(engine)


def test_a_backend_slowed_four_times_is_not_killed(make: Make) -> None:
    path = STARTER / "xl.onnx"
    weights = Weights("xl", path, hashlib.sha256(path.read_bytes()).hexdigest(), 64, 64, 100)
    backend = make()
    engine = load(backend, weights)
    first = pid_of(backend)
    batch = np.zeros((8, 3, 64, 64), np.float32)
    for _ in range(3):
        engine.infer(batch)
    over = threading.Event()

    def throttle() -> None:
        while not over.is_set():
            os.kill(first, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(first, signal.SIGCONT)
            time.sleep(0.01)

    throttling = threading.Thread(target=throttle)
    throttling.start()
    try:
        for _ in range(10):
            assert np.isfinite(engine.infer(batch).logits).all()
    finally:
        over.set()
        throttling.join()
    assert pid_of(backend) == first


def test_a_host_that_never_says_hello_is_killed_and_the_reason_told(make: Make, tmp_path: Path) -> None:
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, hosts.NEVER_HELLO)), Rules(hello_s=0.5))
    with pytest.raises(EngineFailedError, match=r"never said hello: it did not answer in time .*jetsel doctor"):
        load(backend, tiny(tmp_path))


def test_a_start_that_failed_is_not_waited_for_again_by_the_next_model_and_later_it_is(
    make: Make, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    change = f'open({str(starts)!r}, "a").write("x"); os.path.exists({str(tmp_path / "mended")!r}) or sys.exit(1)'
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, change)), Rules(same_failure_s=1.0))
    for _ in range(3):
        with pytest.raises(EngineFailedError, match="exit status 1"):
            load(backend, tiny(tmp_path))
    assert starts.read_text() == "x"
    (tmp_path / "mended").touch()
    time.sleep(1.0)
    assert is_right(load(backend, tiny(tmp_path)))


@pytest.mark.parametrize(
    ("script", "said"),
    [("#!/bin/sh\nexit 3\n", "exit status 3"), ("#!/bin/sh\nkill -ILL $$\n", "SIGILL")],
    ids=["it leaves", "an illegal instruction"],
)
def test_an_interpreter_that_ends_at_once_is_told_with_how(make: Make, tmp_path: Path, script: str, said: str) -> None:
    path = tmp_path / "python-broken"
    path.write_text(script)
    path.chmod(0o755)
    with pytest.raises(EngineFailedError, match=said):
        load(make(Host(interpreter=str(path))), tiny(tmp_path))


def test_an_interpreter_that_is_not_there_is_told(make: Make, tmp_path: Path) -> None:
    with pytest.raises(EngineFailedError, match="python-nowhere: No such file or directory; see: jetsel doctor"):
        load(make(Host(interpreter=str(tmp_path / "python-nowhere"))), tiny(tmp_path))


def test_a_model_that_would_leave_less_than_the_reserve_is_refused_and_others_are_asked_for_again(
    make: Make, tmp_path: Path
) -> None:
    backend = make(Host(reserve_mb=1_000_000))
    with pytest.raises(
        EngineFailedError, match=r"tiny: .* MB would be left before it was loaded, less than the reserve"
    ):
        load(backend, tiny(tmp_path))
    assert pid_of(backend)


def test_a_model_that_answers_no_numbers_is_refused_when_it_is_loaded(make: Make, tmp_path: Path) -> None:
    with pytest.raises(EngineFailedError, match="tiny: it answers numbers that are not finite"):
        load(make(), tiny(tmp_path, matrix=np.full_like(MATRIX, np.nan)))


def test_a_file_that_changed_is_refused(make: Make, tmp_path: Path) -> None:
    weights = tiny(tmp_path)
    weights.path.write_bytes(matrix_model(-MATRIX))
    with pytest.raises(EngineFailedError, match=r"tiny: .*tiny\.onnx is not the file that it was"):
        load(make(), weights)


def test_a_model_that_kills_its_host_when_it_is_loaded_again_is_left_out_and_the_rest_serve(
    make: Make, tmp_path: Path
) -> None:
    change = hosts.DIES_LOADING.format(name="bad", when=str(tmp_path / "now"))
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, change)), Rules(first_pause_s=0.01))
    good, bad = load(backend, tiny(tmp_path, "good")), load(backend, tiny(tmp_path, "bad"))
    (tmp_path / "now").touch()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(lambda: "died 2 times while loading it" in str(bad.unavailable) and good.unavailable is None)
    assert is_right(good)
    assert not bad.is_returning
    with pytest.raises(EngineFailedError, match="died 2 times"):
        bad.infer(images())


def test_a_host_that_keeps_dying_is_given_up_and_started_again_when_a_model_is_opened(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make(rules=Rules(most_deaths=3, first_pause_s=0.01))
    engine = load(backend, tiny(tmp_path))
    for _ in range(4):
        until(lambda: engine.unavailable is None)
        pid = pid_of(backend)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_gone(pid) and engine.unavailable is not None)  # type: ignore[misc]
    until(lambda: "is not started again" in str(engine.unavailable))
    assert not engine.is_returning
    with pytest.raises(EngineFailedError, match="jetsel reload"):
        engine.infer(images())
    assert [record.levelno for record in caplog.records if "given up" in record.getMessage()] == [logging.CRITICAL]
    assert is_right(load(backend, tiny(tmp_path)))


def test_each_start_after_the_second_waits_twice_as_long(make: Make, tmp_path: Path) -> None:
    starts, broken = tmp_path / "starts", tmp_path / "broken"
    change = (
        f'print(time.monotonic(), file=open({str(starts)!r}, "a")); os.path.exists({str(broken)!r}) and sys.exit(1)'
    )
    rules = Rules(first_pause_s=0.2, most_deaths=5)
    backend = make(Host(interpreter=hosts.interpreter(tmp_path, change)), rules)
    engine = load(backend, tiny(tmp_path))
    broken.touch()
    killed_s = time.monotonic()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(lambda: "is not started again" in str(engine.unavailable))
    began_s = [float(line) for line in starts.read_text().split()][1:]
    gaps_s = np.diff([killed_s, *began_s])
    assert len(gaps_s) == 5
    assert (gaps_s[1:] >= [0.2, 0.4, 0.8, 1.6]).all(), "the first of them at once"


def test_the_host_ends_with_a_daemon_that_was_killed(tmp_path: Path) -> None:
    weights = tiny(tmp_path)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        backend = HostedBackend("onnxruntime", Host(), lambda: None)
        load(backend, weights)
        os.write(theirs, str(pid_of(backend)).encode())
        os.kill(pid_of(backend), signal.SIGSTOP)  # so that it cannot even notice
        time.sleep(600)
    os.close(theirs)
    host = int(os.read(ours, 100))
    os.close(ours)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until(lambda: is_gone(host))


def test_closing_ends_the_host(make: Make, tmp_path: Path) -> None:
    backend = make()
    load(backend, tiny(tmp_path))
    pid = pid_of(backend)
    backend.close()
    assert is_gone(pid)


LATE = """#!/bin/sh
if [ -e {when} ]; then touch {begun}; sleep 600; fi
exec {python} "$@"
"""


def test_closing_does_not_wait_for_a_host_that_is_started_again(make: Make, tmp_path: Path) -> None:
    python, when, begun = tmp_path / "python-late", tmp_path / "when", tmp_path / "begun"
    python.write_text(LATE.format(when=when, begun=begun, python=sys.executable))
    python.chmod(0o755)
    backend = make(Host(interpreter=str(python)), replace(RULES, hello_s=600.0))
    load(backend, tiny(tmp_path))
    when.touch()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(begun.exists)
    is_closed_in_time(backend)


def test_closing_does_not_wait_for_a_model_that_is_loaded_again(make: Make, tmp_path: Path) -> None:
    when, begun = tmp_path / "when", tmp_path / "begun"
    python = hosts.interpreter(tmp_path, HANGS_LOADING.format(when=str(when), begun=str(begun)))
    backend = make(Host(interpreter=python), replace(RULES, load_limit_s=600.0))
    load(backend, tiny(tmp_path))
    when.touch()
    os.kill(pid_of(backend), signal.SIGKILL)
    until(begun.exists)
    is_closed_in_time(backend)


HANGS_LOADING = """
class Hanging(host.Host):
    def _load(self, request):
        if os.path.exists({when!r}):
            open({begun!r}, "w").close()
            time.sleep(600)
        return super()._load(request)
host.Host = Hanging
"""


def is_closed_in_time(backend: HostedBackend) -> None:
    """Close it, in less time than its host may take to say hello or to load; fails where a process is left."""
    closing = threading.Thread(target=backend.close, daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    until(lambda: not children_with(os.getpid(), "host.py"))


def test_many_threads_and_many_kills_give_no_wrong_answer(make: Make, tmp_path: Path) -> None:
    backend = make(rules=Rules(most_deaths=100, first_pause_s=0.001))
    engine = load(backend, tiny(tmp_path))
    wrong: list[int] = []
    counts = {"right": 0, "died": 0}
    over = threading.Event()

    def ask(number: int) -> None:
        seed = number
        while not over.is_set():
            seed += 8
            try:
                if not is_right(engine, seed):
                    wrong.append(seed)
                counts["right"] += 1
            except EngineDiedError:
                counts["died"] += 1
                time.sleep(0.01)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            before = counts["right"]
            until(lambda before=before: counts["right"] > before + 20 and engine.unavailable is None)  # type: ignore[misc]
            os.kill(pid_of(backend), signal.SIGKILL)
            until(lambda: engine.unavailable is None)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert counts["died"] > 0


def test_ten_thousand_runs_leave_the_memory_of_both_processes_where_it_was(make: Make, tmp_path: Path) -> None:
    backend = make()
    engine = load(backend, tiny(tmp_path))

    def resident() -> list[int]:
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (os.getpid(), pid_of(backend)))
        return list(pages)

    batch = images(2)
    for _ in range(1000):
        engine.infer(batch)
    before = resident()
    for _ in range(9000):
        engine.infer(batch)
    for earlier, later in zip(before, resident(), strict=True):
        assert later <= 1.02 * earlier
