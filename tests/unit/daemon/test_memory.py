"""The daemon's own memory, as the kernel counts it."""

from __future__ import annotations

import mmap

import pytest

from jetsel.daemon.memory import give_back_freed, resident_mb


def test_resident_memory_is_that_of_this_process() -> None:
    before = resident_mb()
    assert before is not None
    with mmap.mmap(-1, 64_000_000) as held:
        held.write(b"x" * 64_000_000)
        after = resident_mb()
        assert after is not None
        assert after - before == pytest.approx(64, abs=16)
    given_back = resident_mb()
    assert given_back is not None
    assert given_back < after - 48


def test_giving_back_leaves_what_is_in_use() -> None:
    held = [bytes([i % 256]) * 1000 for i in range(5000)]
    del held[::2]
    give_back_freed()
    assert all(kept == bytes([(2 * i + 1) % 256]) * 1000 for i, kept in enumerate(held))
