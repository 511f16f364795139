"""What a process holds: resident memory, descriptors and threads, as /proc tells (proc(5))."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Held:
    """What one process holds."""

    resident_mb: float
    descriptors: int
    threads: int


def held(pid: int) -> Held:
    """Read what a process holds now; raises FileNotFoundError where it is gone."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return Held(
        int(fields["VmRSS"].split()[0]) / 1e3,
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        int(fields["Threads"]),
    )
