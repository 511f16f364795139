"""Which Python runs the engine host: the candidates on this machine, what each offers, and the one that is taken."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting import repairs
from jetsel.engines.hosting.bounded import Ended, run
from jetsel.engines.hosting.process import HOST
from jetsel.errors import ConfigError

OLDEST = (3, 6)
BOARD = Path("/usr/bin")  # where a board's own Python lies: the only one that JetPack brings TensorRT for
JETPACKS = (6, 8, 10, 12)  # the minor versions of those, JetPack 4 to 7: asked before the others
PROBE_S = 30.0  # a board reads TensorRT's libraries from a slow card for the first time
VERSION_S = 5.0

_NAME = re.compile(r"python3\.(\d+)")
# Without -I, and still without the folder of the host's file, whose names would hide those of libraries.
_SEEING_ALL = "import runpy, sys; sys.path.pop(0); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
_SAY_VERSION = "import sys; sys.stdout.write('%d.%d.%d' % sys.version_info[:3])"


class Module(Struct, frozen=True):
    """One module that the backend needs. A version of None: it says none, or does not import; then error says why."""

    version: str | None
    path: str | None
    error: str | None


class Probe(Struct, frozen=True):
    """What one interpreter offers to a backend.

    python: its version, None where it is no Python that runs. reason, repair: why it is of no use and what helps; None
    where it is usable. gpu: as the host says of it (docs/engine-host.md). hidden: the modules that the host never sees,
    for they are there only without -I, as after `pip install --user`.
    """

    path: str
    usable: bool = False
    python: str | None = None
    reason: str | None = None
    repair: str | None = None
    modules: dict[str, Module] = {}
    gpu: dict[str, Any] | None = None
    hidden: dict[str, Module] = {}


class _Said(Struct, frozen=True):
    """What `host.py --probe` prints, as far as it is used."""

    python: str
    usable: bool
    reason: str | None
    modules: dict[str, Module]
    gpu: dict[str, Any] | None


def environment(base: Mapping[str, str], machine: str | None = None) -> dict[str, str]:
    """Return the environment of a host process; what the owner has set in `base` stands.

    No PYTHON* variable is in it: -I ignores them. machine: platform.machine() of another machine.
    """
    ours = {
        # The host multiplies no matrices: the threads that OpenBLAS starts at import would only hold memory.
        "OPENBLAS_NUM_THREADS": "1",
        # CUDA 11.7 and later: load a kernel when it first runs, not all of every library at once; older ones ignore it.
        "CUDA_MODULE_LOADING": "LAZY",
        # ONNX Runtime 1.31 and later would report to its maker over the network.
        "ORT_DISABLE_TELEMETRY": "1",
    }
    if (machine or platform.machine()) == "aarch64":
        # numpy 1.19.5, the newest for Python 3.6, dies of an illegal instruction on Jetsons when its OpenBLAS looks at
        # the processor (numpy issue 18131). Every aarch64 processor runs the kernels named here, so none need be told
        # apart, and for the reason above their speed does not matter.
        ours["OPENBLAS_CORETYPE"] = "ARMV8"
    return ours | dict(base)


def candidates(
    backend: str, set_interpreter: str | None = None, folders: Sequence[Path] | None = None, own: str = sys.executable
) -> list[str]:
    """Return the interpreters to ask, the likeliest first; the one that the configuration sets is the only one.

    backend: "tensorrt" or "onnxruntime". folders: where to look, the board's own first; None: /usr/bin and $PATH.
    own: the interpreter of this process. Each is named once, whatever links to it; a virtual environment is another
    interpreter than the one it was made from.
    """
    if set_interpreter is not None:
        return [set_interpreter]
    if folders is None:
        folders = [BOARD, *(Path(name) for name in os.environ.get("PATH", "").split(":") if name.startswith("/"))]
    found = [*(folder / "python3" for folder in folders[:1]), *_versioned(folders)]
    found = [Path(own), *found] if backend == "onnxruntime" else [*found, Path(own)]
    each: dict[tuple[Path, Path | None], str] = {}
    for path in found:
        if path.is_file() and os.access(path, os.X_OK):
            each.setdefault(_identity(path), str(path))
    return list(each.values())


def probe(interpreter: str, backend: str, timeout_s: float = PROBE_S) -> Probe:
    """Ask one interpreter what it offers to the backend; whatever it does instead is a reason in the result."""
    command = [interpreter, "-I", str(HOST), "--probe", "--backend", backend]
    try:
        ended = run(command, timeout_s, environment(os.environ))
    except OSError as error:
        return Probe(interpreter, reason=repairs.not_started(error), repair=repairs.NAME_ANOTHER)
    said = _parse(ended.output)
    if said is None or ended.status != 0:
        return _failed(command, ended, timeout_s)
    if _is_too_old(said.python):
        return Probe(interpreter, python=said.python, reason=repairs.too_old(said.python), repair=repairs.NAME_ANOTHER)
    if said.usable:
        return Probe(interpreter, usable=True, python=said.python, modules=said.modules, gpu=said.gpu)
    missing = {name: str(module.error) for name, module in said.modules.items() if module.error is not None}
    hidden = _hidden(interpreter, backend, missing, timeout_s) if missing else {}
    places = {name: (module.version, module.path) for name, module in hidden.items()}
    return Probe(
        interpreter,
        python=said.python,
        reason=repairs.lacks(missing, places) if missing else said.reason or "it does not say why it is of no use",
        repair=repairs.bring(interpreter, said.python, missing, places) if missing else repairs.by_hand(command),
        modules=said.modules,
        gpu=said.gpu,
        hidden=hidden,
    )


def probe_all(interpreters: Iterable[str], backend: str, timeout_s: float = PROBE_S) -> list[Probe]:
    """Ask several at the same time, as many as there are processors; the results are in their order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda interpreter: probe(interpreter, backend, timeout_s), interpreters))


def choose(
    backend: str,
    set_interpreter: str | None = None,
    timeout_s: float = PROBE_S,
    folders: Sequence[Path] | None = None,
    own: str = sys.executable,
) -> Probe:
    """Return the first candidate that can host the backend; see `candidates`.

    Raises ConfigError where the configuration names what is no Python, or one too old, and EngineFailedError where no
    candidate is of use; both say why of each.
    """
    found = candidates(backend, set_interpreter, folders, own)
    refused: list[Probe] = []
    for some in (found[:1], found[1:]):  # the first is nearly always the one: the others are asked only where it is not
        asked = probe_all(some, backend, timeout_s)
        for one in asked:
            if one.usable:
                return one
        refused += asked
    if set_interpreter is None:
        each = "; ".join(f"{one.path}: {one.reason}" for one in refused) or "there is no Python 3"
        raise EngineFailedError(f"no interpreter here can host {backend}; for the repair see: jetsel doctor. {each}")
    said = f"host.interpreter: {set_interpreter} cannot host {backend}: {refused[0].reason}; {refused[0].repair}"
    is_python = refused[0].python is not None and not _is_too_old(refused[0].python)
    raise (EngineFailedError if is_python else ConfigError)(f"{said}; see: jetsel doctor")


def _versioned(folders: Sequence[Path]) -> list[Path]:
    """Every python3.N of these folders: JetPack's versions first, then by version, and by folder within one."""
    found: list[tuple[bool, int, Path]] = []
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder)  # noqa: PTH208  # a folder holds thousands of names: no path is made of each
        except OSError:
            continue
        versions = sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
        found += [(minor not in JETPACKS, minor, folder / f"python3.{minor}") for minor in versions]
    return [path for _, _, path in sorted(found, key=lambda entry: entry[:2])]


def _identity(path: Path) -> tuple[Path, Path | None]:
    """What two names of one interpreter share. A virtual environment links to another's, with libraries of its own."""
    return path.resolve(), path.parent.resolve() if repairs.is_virtual(path) else None


def _parse(output: bytes) -> _Said | None:
    """The probe's line; a library that is imported may print others around it."""
    for line in reversed(output.splitlines()):
        try:
            return msgspec.json.decode(line, type=_Said)
        except msgspec.DecodeError:  # noqa: PERF203  # a handful of lines
            continue
    return None


def _failed(command: Sequence[str], ended: Ended, timeout_s: float) -> Probe:
    """What to say of an interpreter that printed no probe, or not only that."""
    interpreter = command[0]
    version = _version(interpreter)
    if version is None:
        said = f"it is no Python that runs: {repairs.ending(ended, timeout_s)}"
        return Probe(interpreter, reason=said, repair=repairs.NAME_ANOTHER)
    if _is_too_old(version):
        return Probe(interpreter, python=version, reason=repairs.too_old(version), repair=repairs.NAME_ANOTHER)
    reason = repairs.ending(ended, timeout_s)
    return Probe(interpreter, python=version, reason=reason, repair=repairs.after(ended, command))


def _version(interpreter: str) -> str | None:
    """The version of an interpreter of any age, None where it does not say one."""
    try:
        ended = run([interpreter, "-E", "-c", _SAY_VERSION], VERSION_S, environment(os.environ))
    except OSError:
        return None
    said = ended.output.decode(errors="replace")
    return said if ended.status == 0 and re.fullmatch(r"\d+\.\d+\.\d+", said) else None


def _is_too_old(version: str) -> bool:
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) < OLDEST


def _hidden(interpreter: str, backend: str, missing: Iterable[str], timeout_s: float) -> dict[str, Module]:
    """Those of the missing modules that the interpreter imports where it is not started with -I."""
    command = [interpreter, "-c", _SEEING_ALL, str(HOST), "--probe", "--backend", backend]
    try:
        said = _parse(run(command, timeout_s, environment(os.environ)).output)
    except OSError:  # it was there a moment ago
        return {}
    modules = said.modules if said else {}
    return {name: modules[name] for name in missing if name in modules and modules[name].error is None}
