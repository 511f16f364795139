"""The daemon's own memory, as the kernel counts it."""

import subprocess
import sys

PROGRAM = """
import ctypes
from jetsel.base.resources import resident_mb, return_large_blocks, settle

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def touched(count, size):
    blocks = [libc.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    return blocks


return_large_blocks()
libc.free(touched(1, 20_000_000)[0])  # the first such free would raise glibc's threshold to that
before = resident_mb()
blocks = touched(20, 5_000_000)
for block in blocks[:-1]:
    libc.free(block)
print(resident_mb() - before)
blocks = touched(500, 100_000)  # small ones stay with malloc when they are freed, below one that is still held
for block in blocks[:-1]:
    libc.free(block)
kept = resident_mb()
settle()
print(kept - resident_mb())
"""


def test_what_was_freed_goes_back_to_the_system() -> None:
    command = [sys.executable, "-c", PROGRAM]  # nobody else works there, and allocation may be changed
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    of_large_messages_mb, of_loading_mb = map(float, done.stdout.split())
    assert of_loading_mb > 40
    assert of_large_messages_mb < 10
