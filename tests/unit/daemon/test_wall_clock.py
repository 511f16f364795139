"""What serves goes by the monotonic clock: the wall clock of a board without a battery jumps by years."""

import re
from pathlib import Path

import pytest

import jetsel

PACKAGE = Path(jetsel.__file__).parent
WALL_CLOCK = re.compile(r"\btime\.time(_ns)?\(|\.(now|today|utcnow)\(")


@pytest.mark.parametrize("part", ["daemon", "runtime", "client", "wire"])
def test_no_file_of_what_serves_reads_the_wall_clock(part: str) -> None:
    readers = [str(path) for path in (PACKAGE / part).rglob("*.py") if WALL_CLOCK.search(path.read_text("utf-8"))]
    assert readers == []
