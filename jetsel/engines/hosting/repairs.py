"""What to say of an interpreter that cannot run the engine host, and what its owner can do about it."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from jetsel.engines.hosting.bounded import OUTPUT_BYTES, Ended

NAME_ANOTHER = "name a Python of version 3.6 or later in jetsel.toml: [host] interpreter"
TENSORRT = "sudo apt install python3-libnvinfer (JetPack's TensorRT, for the board's own Python; never pip's)"
LAST_FOR_36 = {"numpy": "1.19.4", "onnxruntime": "1.10.0", "pycuda": "2022.1"}
"""The last versions that work under Python 3.6 on aarch64: numpy 1.19.5 dies there of an illegal instruction."""

ENVIRONMENT = "/opt/jetsel-host"
"""A virtual environment to suggest where pip may not install into a Python itself."""

_SHOWN = 80  # characters of what came instead of an answer

Places = Mapping[str, tuple[str | None, str | None]]  # version and path, by module


def not_started(error: OSError) -> str:
    """Say why a program could not be started."""
    return f"it cannot be started: {error.strerror}"


def too_old(version: str) -> str:
    """Say that this Python is older than the host's code."""
    return f"Python {version} is too old: the engine host needs 3.6 or later"


def ending(ended: Ended, limit_s: float) -> str:
    """Say how a probe ended that gave no answer."""
    words = f": {ended.words}" if ended.words else ""
    if ended.is_too_long:
        return f"it printed more than {OUTPUT_BYTES} bytes and was killed"
    if ended.status is None:
        return f"it did not answer within {limit_s:g} s and was killed{words}"
    if ended.status < 0:
        return f"it was ended by {_signal_name(-ended.status)}{words}"
    if ended.status > 0:
        return f"it left with exit status {ended.status}{words}"
    shown = " ".join(ended.output.decode(errors="replace").split())[:_SHOWN]
    return f"it printed no answer{f', but {shown!r}' if shown else words}"


def after(ended: Ended, command: Sequence[str]) -> str:
    """Return what helps against a probe that ended like that."""
    if ended.status == -signal.SIGILL:
        return (
            f"numpy 1.19.5 does that on a Jetson: {_pip(command[0], 'numpy==1.19.4')}, "
            "or set OPENBLAS_CORETYPE=ARMV8 in the environment"
        )
    return by_hand(command)


def by_hand(command: Sequence[str]) -> str:
    """Return how to see more."""
    return f"see what it says by hand: {shlex.join(command)}"


def lacks(missing: Mapping[str, str], hidden: Places) -> str:
    """Say which modules an interpreter does not import, and why; missing: the error of each."""
    absent = [name for name, error in missing.items() if name not in hidden and f"No module named '{name}'" in error]
    said = [f"{_joined(absent)} {'is' if len(absent) == 1 else 'are'} not installed for it"] if absent else []
    return "; ".join(said + [_why(name, error, hidden) for name, error in missing.items() if name not in absent])


def bring(interpreter: str, version: str, missing: Mapping[str, str], hidden: Places) -> str:
    """Return the commands that give an interpreter the modules; hidden: those that it imports without -I."""
    pins = LAST_FOR_36 if version.startswith("3.6.") else {}
    wanted = [f"{name}=={pins[name]}" if name in pins else name for name in missing if name != "tensorrt"]
    commands = [TENSORRT] if "tensorrt" in missing else []
    if wanted and _is_managed(interpreter, version):
        python = f"{ENVIRONMENT}/bin/python"
        commands += [f"sudo {shlex.quote(interpreter)} -m venv --system-site-packages {ENVIRONMENT}"]
        commands += [_pip(python, *wanted), f'set [host] interpreter = "{python}"']
    elif wanted:
        elsewhere = ", or set [host] interpreter to the python of a virtual environment that has it" if hidden else ""
        commands += [_pip(interpreter, *wanted) + elsewhere]
    return "; then ".join(commands)


def _why(name: str, error: str, hidden: Places) -> str:
    if name in hidden:
        version, path = hidden[name]
        called = name if version is None else f"{name} {version}"
        return f"{called} is seen only without -I, in {_folder(path)}, and the engine host is started with it"
    return f"{name} does not import: {error}"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _folder(path: str | None) -> str:
    """The folder that a module was installed into."""
    if path is None:
        return "a folder that it does not tell"
    file = Path(path)
    return str(file.parent.parent if file.stem == "__init__" else file.parent)


def _is_managed(interpreter: str, version: str) -> bool:
    """Whether pip refuses to install into it, for it is the distribution's: PEP 668, since Ubuntu 23.04 (JetPack 7)."""
    if is_virtual(Path(interpreter)):
        return False
    major, minor = version.split(".")[:2]
    prefix = Path(interpreter).resolve().parent.parent
    return (prefix / "lib" / f"python{major}.{minor}" / "EXTERNALLY-MANAGED").exists()


def is_virtual(interpreter: Path) -> bool:
    """Whether it is a virtual environment's."""
    return (interpreter.parent.parent / "pyvenv.cfg").is_file()


def _pip(interpreter: str, *wanted: str) -> str:
    sudo = "" if is_virtual(Path(interpreter)) and os.access(Path(interpreter).parent, os.W_OK) else "sudo "
    # pycuda is compiled when it is installed, and looks for CUDA's compiler on the path, which sudo replaces.
    cuda = "env PATH=/usr/local/cuda/bin:$PATH " if any(name.startswith("pycuda") for name in wanted) else ""
    return f"{sudo}{cuda}{shlex.quote(interpreter)} -m pip install {' '.join(wanted)}"


def _signal_name(number: int) -> str:
    try:
        found = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    return f"{found.name} ({signal.strsignal(number)})"
