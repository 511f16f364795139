"""The configuration that applies, and the Python and the libraries that this jetsel runs with."""

from __future__ import annotations

import contextlib
import importlib
import io
import platform
import sys
from collections.abc import Iterator

from jetsel import __version__
from jetsel.cli.doctoring.finding import Finding, Subject

LIBRARIES = {
    "numpy": "numpy",
    "opencv": "cv2",
    "onnxruntime": "onnxruntime",
    "pyzmq": "zmq",
    "pynacl": "nacl.bindings",
    "msgspec": "msgspec",
}
"""What the daemon cannot do without: what it is called, and the module."""


def configuration(subject: Subject) -> Iterator[Finding]:
    """Look which file applies and whether it can be read."""
    if subject.fault is not None:
        repair = "correct it (`jetsel config` prints a whole one); until then the defaults are looked at below"
        yield Finding("file", "failed", subject.fault, repair)
    elif subject.path is None:
        yield Finding("file", "ok", "there is none: the built-in defaults apply")
    else:
        yield Finding("file", "ok", str(subject.path))


def installation(_: Subject) -> Iterator[Finding]:
    """Look at this interpreter, and import what the daemon imports."""
    yield Finding("jetsel", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()}, {sys.executable}, {platform.platform()}")
    for name, module in LIBRARIES.items():
        try:
            version = _imported(module)
        except (ImportError, OSError) as error:  # noqa: PERF203  # six libraries
            repair = f"{sys.executable} -m pip install --force-reinstall jetsel"
            yield Finding(name, "failed", f"does not import: {error}", repair)
        else:
            yield Finding(name, "ok", version)


def _imported(module: str) -> str:
    """Import it and return its version; what some print of each other's faults is left out."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        importlib.import_module(module)
        return str(sys.modules[module.partition(".")[0]].__version__)
