"""Under which conditions figures were taken: machine, versions, load. A figure without them says nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from benchmarks.features import processor

LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime", "pyzmq", "msgspec", "mosec")


def conditions() -> list[str]:
    """Return the machine, the versions and the load average now, each a line of Markdown."""
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    versions = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    return [
        f"- machine: {processor()}, {cores} cores, {platform.system()} {platform.release()}",
        f"- software: Python {platform.python_version()}, {versions}",
        f"- load average before the start (1, 5, 15 min): {load}"
        + (" - the machine is busy, trust the ratios only" if os.getloadavg()[0] > cores / 4 else ""),
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
