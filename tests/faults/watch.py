"""What a process and those it started hold: resident memory and descriptors, as /proc tells (proc(5))."""

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


def descriptors(pid: int) -> list[str]:
    """What each descriptor of a process leads to, sorted: to tell which was left open."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue  # closed meanwhile
        found.append(target.split(":[")[0])  # sockets and pipes: the kind without its number
    return sorted(found)
