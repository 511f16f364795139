"""The board: which one it is, its Linux for Tegra, its GPU, and how much memory is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jetsel.cli.doctoring.finding import HOSTED, Finding, Subject, size

_RELEASE = re.compile(r"# R(\d+) \(release\), REVISION: ([\d.]+)")


def board(subject: Subject) -> Iterator[Finding]:
    """Look at what the kernel and NVIDIA's release file say of the board."""
    model = _read(subject.root / "proc/device-tree/model")
    if model is None:
        yield Finding("model", "info", "no Jetson: /proc/device-tree/model is not there")
    else:
        yield Finding("model", "ok", model.rstrip("\0\n"))
    release = _read(subject.root / "etc/nv_tegra_release")
    if release is None:
        yield Finding("L4T", "info", "no Linux for Tegra: /etc/nv_tegra_release is not there")
    else:
        found = _RELEASE.match(release)
        yield Finding("L4T", "ok", f"{found[1]}.{found[2]}" if found else release.splitlines()[0] if release else "")
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
