"""The board: which one it is, its Linux for Tegra, its power mode, its GPU, and how much memory is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jetsel.cli.doctoring.finding import HOSTED, Finding, Subject, size


def board(subject: Subject) -> Iterator[Finding]:
    """Look at what the kernel, NVIDIA's release file and nvpmodel say of the board."""
    from jetsel.power.machine import Machine

    power = subject.config.power
    facts = Machine(subject.root / "sys" if power.sysfs == "/sys" else power.sysfs).facts()
    if facts.l4t.value is None:
        yield Finding("model", "info", f"no Jetson: {facts.board}")
    else:
        yield Finding("model", "ok", str(facts.board))
    release = "" if facts.jetpack.value is None else f", of JetPack {facts.jetpack}"
    for name, fact, more in (("L4T", facts.l4t, release), ("power mode", facts.power_mode, "")):
        yield Finding(name, "info" if fact.value is None else "ok", f"{fact}{more}")
    hosted = subject.taken("tensorrt")
    gpu = None if hosted is None else hosted.gpu
    yield Finding("gpu", "info" if gpu is None else "ok", str(gpu["name"]) if gpu else "not known without TensorRT")


def memory(subject: Subject) -> Iterator[Finding]:
    """Look how much memory is left, and whether that is more than every load must leave free."""
    lines = (_read(subject.root / "proc/meminfo") or "").splitlines()
    found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest}
    available, total = found.get("MemAvailable"), found.get("MemTotal")
    if available is None or total is None:
        yield Finding("available", "info", "not known: /proc/meminfo does not tell")
        return
    said = f"{size(available)} of {size(total)}"
    reserve = subject.config.host.reserve_mb * 1e6
    if available < reserve and subject.used & set(HOSTED):
        repair = "end other programs, add memory, or set [host] reserve_mb lower"
        said = f"{said}, less than the {size(reserve)} of host.reserve_mb: no model will be loaded"
        yield Finding("available", "warning", said, repair)
    else:
        yield Finding("available", "ok", said)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
