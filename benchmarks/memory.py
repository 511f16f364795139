"""What the kernel says of another process's memory (proc(5))."""

from __future__ import annotations

from pathlib import Path


def memory_mb(pid: int) -> dict[str, float]:
    """Return VmRSS (resident now), VmHWM (the most so far) and Pss (shared pages split among who shares), in MB."""
    found = _fields(Path(f"/proc/{pid}/status")) | _fields(Path(f"/proc/{pid}/smaps_rollup"))
    return {name: found[name] * 1024 / 1e6 for name in ("VmRSS", "VmHWM", "Pss")}


def forget_peak(pid: int) -> None:
    """Let VmHWM begin again at what is resident now: the peak of the start is over."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def available_mb() -> float:
    """Return what the machine can give out without swapping, in MB."""
    return _fields(Path("/proc/meminfo"))["MemAvailable"] * 1024 / 1e6


def _fields(path: Path) -> dict[str, int]:
    """Return the lines `Name:  123 kB` of a file."""
    words = (line.split() for line in path.read_text(encoding="ascii", errors="replace").splitlines())
    return {line[0].removesuffix(":"): int(line[1]) for line in words if line[-1] == "kB"}
