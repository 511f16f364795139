"""An engine host that does not start, and models in one: which are refused, which are loaded again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosted import HostedBackend, HostedEngine
from jetsel.engines.hosting.rules import Rules
from tests.system import hosts
from tests.system.engine_host.models import Make, images, is_right, load, pid_of, tiny
from tests.waiting import until

pytestmark = pytest.mark.slow


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


pytestmark = pytest.mark.slow


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
    backend = make(reserve_bytes=10**12)
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
    assert not bad.is_returning
    with pytest.raises(EngineFailedError, match="died 2 times"):
        bad.infer(images())
