"""An engine host that does not start: why is told, and not waited for again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosted import HostedBackend
from jetsel.engines.hosting.rules import Rules
from tests.system import hosts
from tests.system.engine_host.models import Make, is_right, load, tiny
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
