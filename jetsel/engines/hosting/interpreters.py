"""The Python interpreter and environment of the engine host, and the repair if a module is missing."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

RELEASE = Path("/etc/nv_tegra_release")  # begins "# R32 (release), REVISION: 7.1"
BOARD = Path("/usr/bin")  # folder of the board's own Python, the only one with JetPack's TensorRT
JETPACKS = {32: "python3.6", 34: "python3.8", 35: "python3.8", 36: "python3.10", 38: "python3.12"}
"""Python version by release of Jetson Linux: JetPack 4, 5, 5, 6 and 7."""

TENSORRT = "sudo apt install python3-libnvinfer (JetPack's TensorRT, for the board's own Python; not from pip)"
LAST_FOR_36 = {"numpy": "numpy==1.19.4", "onnxruntime": "onnxruntime==1.10.0", "pycuda": "pycuda==2022.1"}
"""Last versions that work under Python 3.6 on aarch64: numpy 1.19.5 dies there of an illegal instruction."""

_MODULES = ("tensorrt", "numpy", "pycuda", "onnxruntime")


def default(backend: str, release: Path = RELEASE, board: Path = BOARD) -> str:
    """Return the path of the Python that runs the host if none is configured. backend: "tensorrt" or "onnxruntime".

    ONNX Runtime uses this process's interpreter. TensorRT uses the Python for which JetPack installs it, which may not
    be `python3` any more; if the release is unknown, it uses `board`'s `python3`. release, board: for tests.
    """
    if backend == "onnxruntime":
        return sys.executable
    try:
        release_number = re.match(r"# R(\d+)", release.read_text())
    except (OSError, UnicodeDecodeError):
        release_number = None
    path = board / JETPACKS.get(int(release_number[1]) if release_number else 0, "python3")
    return str(path if path.exists() else board / "python3")


def environment(base: Mapping[str, str] | None = None, machine: str | None = None) -> dict[str, str]:
    """Return a host's environment: `base` (None: os.environ) and defaults. machine: None: platform.machine()."""
    ours = {
        # The host multiplies no matrices, and OpenBLAS's threads would only hold memory.
        "OPENBLAS_NUM_THREADS": "1",
        # CUDA 11.7 and later: load each kernel at its first run instead of all at once; older ones ignore it.
        "CUDA_MODULE_LOADING": "LAZY",
    }
    if (machine or platform.machine()) == "aarch64":
        # numpy 1.19.5, the newest for Python 3.6, dies of an illegal instruction on Jetsons when its OpenBLAS detects
        # the processor (numpy issue 18131). Every aarch64 processor runs the kernels set here.
        ours["OPENBLAS_CORETYPE"] = "ARMV8"
    return ours | dict(os.environ if base is None else base)


def repair(interpreter: str, fault: str) -> str:
    """Return commands that install the modules in the host's message "Python 3.6.9 does not import pycuda (why)"."""
    missing = [name for name in _MODULES if f" {name} (" in fault]
    pins = LAST_FOR_36 if "Python 3.6." in fault else {}
    commands = [TENSORRT] if "tensorrt" in missing else []
    requirements = [pins.get(name, name) for name in missing if name != "tensorrt"]
    if requirements:
        # pip compiles pycuda, and needs CUDA's compiler on the path, which sudo replaces.
        cuda = "env PATH=/usr/local/cuda/bin:$PATH " if "pycuda" in missing else ""
        commands.append(
            f"sudo {cuda}{shlex.quote(interpreter)} -m pip install {' '.join(requirements)} (for all users: the "
            "engine host does not see what pip installs with --user; if pip refuses, make a virtual environment with "
            "--system-site-packages and name its python in [host] interpreter)"
        )
    return "; then ".join(commands) or "see: jetsel doctor"
