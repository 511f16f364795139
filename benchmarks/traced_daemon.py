"""A daemon that notes the steps of its requests: `traced_daemon.py NOTES serve --config FILE`. Not for timing."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

APART_NS = 50_000_000
"""Reads and writes further apart than this belong to different requests: the benchmark waits longer between them."""

Note = tuple[int, str, str]  # when (ns), kind of step, where

notes: list[Note] = []


class CountedLock:
    """A lock of `threading` that notes each time it is taken."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._lock = made()

    def acquire(self, *args: Any, **options: Any) -> Any:
        """As the lock's own."""
        _note("lock", sys._getframe(1))
        return self._lock.acquire(*args, **options)

    def __enter__(self) -> Any:
        _note("lock", sys._getframe(1))
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


def _note(kind: str, frame: FrameType) -> None:
    notes.append((time.monotonic_ns(), kind, f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"))


def _profile(package: str) -> Callable[[FrameType, str, Any], None]:
    """Return a profile function (sys.setprofile) that notes calls of the package's functions, and socket I/O."""

    def profile(frame: FrameType, what: str, detail: Any) -> None:
        if what == "call":
            if frame.f_code.co_filename.startswith(package):
                _note("call", frame)
        elif what == "c_call" and getattr(detail, "__name__", "") in ("recv_into", "recv", "send", "sendmsg"):
            _note("io", frame)

    return profile


def requests_of(taken: list[Note]) -> list[dict[str, Any]]:
    """Return the steps of each request, from its first read to its last write."""
    moments = [at for at, kind, _ in taken if kind == "io"]
    spans: list[list[int]] = []
    for at in moments:
        if not spans or at - spans[-1][1] > APART_NS:
            spans.append([at, at])
        spans[-1][1] = at
    found = []
    for first, last in spans:
        within = [(kind, where) for at, kind, where in taken if first <= at <= last]
        calls = [where for kind, where in within if kind == "call"]
        found.append({"calls": calls, "locks": [where for kind, where in within if kind == "lock"]})
    return found


def main() -> None:
    """Count from before the first import of jetsel, serve, and write the notes at the end."""
    out = Path(sys.argv.pop(1))
    lock, rlock = threading.Lock, threading.RLock
    threading.Lock = lambda: CountedLock(lock)  # type: ignore[assignment,misc]
    threading.RLock = lambda: CountedLock(rlock)  # type: ignore[assignment,misc]
    import jetsel
    from jetsel.__main__ import main as jetsel_main

    profile = _profile(str(Path(jetsel.__file__).parent))
    threading.setprofile(profile)
    sys.setprofile(profile)
    end = os._exit

    def write_and_end(status: int) -> None:
        sys.setprofile(None)
        out.write_text(json.dumps(requests_of(sorted(notes.copy()))), encoding="utf-8")
        end(status)

    os._exit = write_and_end  # type: ignore[assignment]  # how the daemon ends
    jetsel_main()


if __name__ == "__main__":
    main()
