"""The daemon's own memory, as the kernel counts it."""

from __future__ import annotations

import subprocess
import sys

FREES = """
import ctypes
from jetsel.daemon.memory import resident_mb, return_large_blocks, settle

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def touched(count, size):
    blocks = [libc.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    return blocks
"""


def megabytes_of(code: str) -> list[float]:
    """What the code prints, run in a process of its own, where nobody else works and allocation may be changed."""
    found = subprocess.run([sys.executable, "-c", FREES + code], capture_output=True, text=True, timeout=60, check=True)
    return [float(word) for word in found.stdout.split()]


def test_what_loading_freed_goes_back_to_the_system() -> None:
    # Small blocks stay with malloc when they are freed, below one that is still held.
    kept, left = megabytes_of(
        """
blocks = touched(500, 100_000)
for block in blocks[:-1]:
    libc.free(block)
print(resident_mb())
settle()
print(resident_mb())
"""
    )
    assert kept - left > 40


def test_large_blocks_go_back_as_soon_as_they_are_freed() -> None:
    # The first free of 20 MB would raise glibc's threshold to that; what is below a block still held would stay.
    before, after = megabytes_of(
        """
return_large_blocks()
libc.free(touched(1, 20_000_000)[0])
print(resident_mb())
blocks = touched(20, 5_000_000)
for block in blocks[:-1]:
    libc.free(block)
print(resident_mb())
"""
    )
    assert after - before < 10
