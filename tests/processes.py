"""What is begun in a test and ends with it; what a process has started and holds, as Linux tells (proc(5))."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@contextlib.contextmanager
def ended(begin: Callable[..., Any], end: Callable[[Any], object]) -> Iterator[Callable[..., Any]]:
    """Yield what calls BEGIN; whatever that returned is ended with the block, in the same order."""
    begun = []

    def beginning(*given: Any, **named: Any) -> Any:
        begun.append(begin(*given, **named))
        return begun[-1]

    yield beginning
    for one in begun:
        end(one)


class Runs(Protocol):
    """What has a process."""

    process: subprocess.Popen[Any]


def kill(one: Runs) -> None:
    one.process.kill()
    one.process.wait(10)


def children_of(pid: int) -> list[int]:
    """The processes that one of its threads has started."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended
            found += map(int, children.read_text().split())
    return found


def family_of(pid: int) -> list[int]:
    """Itself and all its descendants."""
    family = [pid]
    for parent in family:
        family += children_of(parent)
    return family


def children_with(pid: int, word: str) -> list[int]:
    """Those of its children whose command line has this in it."""
    found: list[int] = []
    for child in children_of(pid):
        with contextlib.suppress(OSError):  # it has ended
            if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


def port_of(pid: int) -> int | None:
    """The TCP port that a process listens on, None where there is none yet (proc(5), /proc/net/tcp)."""
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # it has closed this one
            links.append(str(path.readlink()))
    inodes = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    rows = (line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
    ports = [int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes]
    return ports[0] if ports else None


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
