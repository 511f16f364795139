"""The configuration that applies, the libraries of this jetsel, and the daemon that answers at its socket."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from jetsel import __version__
from jetsel.cli.checks import Finding, Subject
from jetsel.errors import JetselError, NoDaemonError

LIBRARIES = ("numpy", "cv2", "PIL", "onnxruntime", "zmq", "msgspec")  # the modules that the daemon cannot do without

STATUS_MS = 5000.0  # a daemon under load answers late


def installation(subject: Subject) -> Iterator[Finding]:
    """Look which configuration applies and whether it can be read, and import what the daemon imports."""
    repair = "correct it (`jetsel config` prints a whole one); until then the defaults are looked at below"
    said = subject.fault or str(subject.path or "there is none: the built-in defaults apply")
    yield Finding("configuration", "failed" if subject.fault else "ok", said, repair if subject.fault else None)
    versions = [__version__, f"Python {platform.python_version()} ({sys.executable})"]
    for name in LIBRARIES:
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                versions.append(f"{name} {importlib.import_module(name).__version__}")
        except (ImportError, OSError) as error:  # noqa: PERF203  # six libraries
            repair = f"{sys.executable} -m pip install --force-reinstall jetsel"
            yield Finding(name, "failed", f"does not import: {error}", repair)
    yield Finding("jetsel", "ok", ", ".join([*versions, platform.platform()]))


def daemon(subject: Subject) -> Iterator[Finding]:
    """Look whose the socket is, and whether a daemon answers at it."""
    from jetsel.client import Client
    from jetsel.endpoint import VARIABLE, find

    try:
        endpoint = find(None if VARIABLE in os.environ else subject.config.server.endpoint)
        path = Path(endpoint.removeprefix("ipc://"))
        with contextlib.suppress(OSError, KeyError):  # what may not be seen, connecting says more about
            mode = f"{path.stat().st_mode & 0o777:o}"
            yield Finding("socket", "ok", f"{path}: owner {path.owner()}, group {path.group()}, mode {mode}")
        with Client(endpoint, timeout_ms=STATUS_MS) as client:
            reply = client.status()
    except JetselError as error:
        said, _, repair = str(error).partition(": ")
        absent = isinstance(error, NoDaemonError)
        yield Finding("answers", "warning" if absent else "failed", said, repair or "see: journalctl -u jetsel")
        return
    progress = f", {reply.progress}" if reply.progress else ""
    yield Finding("answers", "ok", f"{', '.join(reply.endpoints)}: {reply.state}{progress}, process {reply.pid}")
    if reply.version != __version__:
        said = f"it is jetsel {reply.version}, this command is {__version__}"
        yield Finding("version", "warning", said, "sudo systemctl restart jetsel")
    for model in (model for family in reply.families for model in family.models if model.state == "unavailable"):
        yield Finding(model.name, "failed", f"{model.state}: {model.reason}", "jetsel reload, once that is repaired")
