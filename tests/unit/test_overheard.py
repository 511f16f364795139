"""What a process prints arrives line by line, however it prints it, and costs nothing once the process is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from jetsel import overheard

LIMIT_S = 20.0


def heard_of(code: str) -> list[str]:
    """The lines of a process that runs this."""
    reader, writer = overheard.pipe()
    lines: list[str] = []
    overheard.overhear(reader, lines.append, "overhear-test")
    subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=writer, check=False)
    os.close(writer)
    give_up = time.monotonic() + LIMIT_S
    while any(thread.name == "overhear-test" for thread in threading.enumerate()):
        assert time.monotonic() < give_up, "it reads on after the end"
        time.sleep(0.01)
    return lines


def test_lines_of_both_outputs_are_told_and_the_last_without_its_end_too() -> None:
    code = "import os; os.write(1, b'one\\ntw'); os.write(2, b'o\\n\\n'); os.write(1, b'three')"
    assert heard_of(code) == ["one", "two", "three"]


def test_what_is_no_text_is_told_as_far_as_it_is() -> None:
    assert heard_of("import os; os.write(1, b'\\xff ok\\n')") == ["\ufffd ok"]


def test_a_line_without_end_is_told_in_parts_and_fills_no_memory() -> None:
    lines = heard_of("import os\nfor _ in range(500): os.write(1, b'x' * 10_000)")
    assert max(map(len, lines)) <= overheard.LONGEST_LINE
    assert sum(map(len, lines)) == 5_000_000


def test_a_process_that_prints_much_is_not_held_up() -> None:
    assert len(heard_of("import os\nfor n in range(50_000): os.write(1, b'%d\\n' % n)")) == 50_000


def test_the_descriptor_is_given_back() -> None:
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(3):
        heard_of("print(1)")
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
