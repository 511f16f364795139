"""The wall clock jumps by years under a running daemon: nothing that it does goes by that clock."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Start

SOURCE = Path(__file__).with_name("clock.c")
YEAR_S, DAY_S = 31_557_600, 86_400


class Clock:
    """The wall clock of the processes that are started with `environment`; others keep theirs."""

    def __init__(self, folder: Path) -> None:
        library, offset = folder / "clock.so", folder / "offset"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True, timeout=60)
        offset.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}
        with offset.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), 8)

    def jump(self, offset_s: int) -> None:
        """Set it so far ahead of the real one, or behind it where that is negative."""
        self._mapped[:] = struct.pack("l", offset_s)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_clock_that_jumps_back_and_forth_is_noticed_by_nobody(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    clock = Clock(tmp_path)
    clock.jump(10 * YEAR_S)
    seen = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env=clock.environment,
        capture_output=True,
        check=True,
    )
    assert float(seen.stdout) > time.time() + 9 * YEAR_S, "the clock that is to jump is not the one that Python reads"
    daemon = start(env=clock.environment)
    peer = connect(daemon)
    uptimes_s = []
    for offset_s in (-20 * YEAR_S, DAY_S, -DAY_S, 0):
        clock.jump(offset_s)
        answers = [peer.classify(jpeg, deadline_ms=10_000) for _ in range(10)]
        assert {answer["type"] for answer in answers} == {"answer"}
        assert all(0 <= answer["stages_ms"]["total"] < 10_000 for answer in answers)
        assert peer.ask({"type": "reload"})["type"] == "reloaded"
        uptimes_s.append(peer.status()["uptime_s"])
        time.sleep(1.1)  # the threads' heartbeat, and the meter's
    assert uptimes_s == sorted(uptimes_s)
    assert 0 < uptimes_s[0] <= uptimes_s[-1] < DAY_S
    assert daemon.stop() == 0
