"""What a library prints on stderr is a line of the log, and holds up nobody."""

from __future__ import annotations

import subprocess
import sys

PRELUDE = """
import ctypes, os, sys, time
from jetsel.daemon.logs.handler import begin
begin("info")
libc = ctypes.CDLL(None)
"""


def printed(code: str) -> str:
    """What a process that logs, and runs this, writes on its stderr."""
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    return found.stderr


def test_a_library_s_line_is_told_as_one_of_the_log_and_a_flood_of_them_is_counted() -> None:
    lines = printed(
        """
for number in range(300):
    libc.dprintf(2, b"Corrupt JPEG data\\n")
    time.sleep(0.001)
time.sleep(0.3)
import logging; logging.shutdown()
"""
    ).splitlines()
    assert len(lines) == 6
    assert all("a library printed: Corrupt JPEG data" in line and "event=library-output" in line for line in lines)
    assert "and 295 more like it" in lines[-1]


def test_more_than_anybody_reads_is_lost_and_waited_for_by_nobody() -> None:
    lines = printed(
        """
libc.write.restype = ctypes.c_ssize_t
held = ctypes.PyDLL(None)  # calls with the interpreter's lock, so that nobody can read meanwhile
held.write.restype = ctypes.c_ssize_t
block = b"x" * 1999 + b"\\n"
while held.write(2, block, len(block)) > 0:
    pass
time.sleep(0.3)
os._exit(0)
"""
    ).splitlines()
    assert 1 <= len(lines) <= 5


def test_a_crash_s_stacks_are_not_lost_in_the_pipe() -> None:
    assert "Fatal Python error: Aborted" in printed("os.abort()")


def test_what_is_printed_after_the_log_has_ended_goes_where_it_always_did() -> None:
    assert printed('import logging; logging.shutdown(); libc.dprintf(2, b"farewell\\n")') == "farewell\n"
