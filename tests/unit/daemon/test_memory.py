"""How much memory the process says it holds, and that what was freed goes back."""

from __future__ import annotations

import ctypes

from jetsel.daemon.memory import give_back_freed, resident_mb


def test_memory_that_is_touched_is_counted() -> None:
    before = resident_mb()
    held = b"\1" * 50_000_000
    after = resident_mb()
    assert before is not None
    assert after is not None
    assert 45 < after - before < 60
    assert held


def test_freed_memory_goes_back_to_the_system() -> None:
    # Small blocks are kept by malloc when freed, and the last one, still held, keeps the heap from shrinking by itself.
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(100_000) for _ in range(500)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    last = blocks.pop()
    for block in blocks:
        libc.free(block)
    kept = resident_mb()
    give_back_freed()
    left = resident_mb()
    libc.free(last)
    assert kept is not None
    assert left is not None
    assert kept - left > 40
