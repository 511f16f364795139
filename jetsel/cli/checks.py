"""The checks of `jetsel doctor`: one function for each section of the installation."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jetsel import __version__
from jetsel.base.config import Config
from jetsel.base.errors import JetselError, NoDaemonError

if TYPE_CHECKING:
    from jetsel.base.config import Power
    from jetsel.site.site import ServedFamilies, Site

State = Literal["ok", "info", "warning", "failed"]


class Finding(NamedTuple):
    """One result of a check. name: of what was checked. said: the result in words. repair: None if none is needed."""

    name: str
    state: State
    said: str
    repair: str | None = None


@dataclass
class Subject:
    """The installation to check. fault: why the file at `path` cannot be read; `config` then holds the defaults."""

    path: Path | None
    config: Config
    fault: str | None = None

    @property
    def backends(self) -> set[str]:
        """The names of the configured backends."""
        return {self.config.models.backend, *self.config.models.backends.values()}

    @cached_property
    def tensorrt(self) -> dict[str, Any] | JetselError:
        """What the process that runs TensorRT reports about it and the GPU, or the error that says what is missing."""
        from jetsel.engines.hosting.interpreters import default
        from jetsel.engines.hosting.process import HostStart, query_host

        interpreter = self.config.host.interpreter or default("tensorrt")
        try:
            host = HostStart(interpreter, "tensorrt", output=subprocess.DEVNULL)
            return {"interpreter": interpreter} | query_host(host)
        except JetselError as error:
            return error

    @cached_property
    def site(self) -> Site:
        """The models on disk."""
        from jetsel.site.site import open_site

        return open_site(self.config)

    @cached_property
    def served(self) -> ServedFamilies:
        """The families that a daemon would serve; raises JetselError if it would not start."""
        logging.getLogger("jetsel").addHandler(logging.NullHandler())  # hides log lines, which the findings repeat
        return self.site.served()


LIBRARIES = ("numpy", "cv2", "PIL", "onnxruntime", "zmq", "msgspec")  # modules that the daemon needs

STATUS_MS = 5000.0  # a busy daemon replies late


def installation(subject: Subject) -> Iterator[Finding]:
    """Check the configuration file, and import the daemon's libraries."""
    repair = "correct it (`jetsel config` prints a complete one); the checks below use the defaults"
    fault = subject.fault or str(subject.path or "there is none: the built-in defaults apply")
    yield Finding("configuration", "failed" if subject.fault else "ok", fault, repair if subject.fault else None)
    versions = [__version__, f"Python {platform.python_version()} ({sys.executable})"]
    for name in LIBRARIES:
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                versions.append(f"{name} {importlib.import_module(name).__version__}")
        except (ImportError, OSError) as error:  # noqa: PERF203  # only six libraries
            repair = f"{sys.executable} -m pip install --force-reinstall jetsel"
            yield Finding(name, "failed", f"does not import: {error}", repair)
    yield Finding("jetsel", "ok", ", ".join([*versions, platform.platform()]))


def daemon(subject: Subject) -> Iterator[Finding]:
    """Check the socket's owner and mode, and whether a daemon answers on it."""
    from jetsel.base.endpoint import VARIABLE, find
    from jetsel.client import Client

    try:
        endpoint = find(None if VARIABLE in os.environ else subject.config.server.endpoint)
        path = Path(endpoint.removeprefix("ipc://"))
        with contextlib.suppress(OSError, KeyError):  # connecting reports the cause
            mode = f"{path.stat().st_mode & 0o777:o}"
            yield Finding("socket", "ok", f"{path}: owner {path.owner()}, group {path.group()}, mode {mode}")
        with Client(endpoint, timeout_ms=STATUS_MS) as client:
            reply = client.status()
    except JetselError as error:
        fault, _, repair = str(error).partition(": ")
        absent = isinstance(error, NoDaemonError)
        yield Finding("answers", "warning" if absent else "failed", fault, repair or "see: journalctl -u jetsel")
        return
    progress = f", {reply.progress}" if reply.progress else ""
    yield Finding("answers", "ok", f"{', '.join(reply.endpoints)}: {reply.state}{progress}, process {reply.pid}")
    if reply.version != __version__:
        fault = f"it is jetsel {reply.version}, this command is {__version__}"
        yield Finding("version", "warning", fault, "sudo systemctl restart jetsel")
    for model in (model for family in reply.families for model in family.models if model.state == "unavailable"):
        yield Finding(model.name, "failed", f"{model.state}: {model.reason}", "correct that, then run: jetsel reload")


def board(subject: Subject) -> Iterator[Finding]:
    """Check the board's state as the kernel, nvpmodel and jetson-stats report it, and the power sensors."""
    from jetsel.power.machine import read_facts, throttled

    settings = subject.config.power
    facts = read_facts(settings)
    is_jetson = facts.l4t.value is not None
    release = f"L4T {facts.l4t}" if is_jetson else "no Jetson"
    yield Finding("model", "ok" if is_jetson else "info", f"{facts.board}; {release}")
    yield Finding("power mode", "info" if facts.power_mode.value is None else "ok", str(facts.power_mode))
    for reason in throttled(None, facts):
        yield Finding("throttled", "warning", reason, "cool the board, or give it a stronger supply")
    if not settings.jtop:
        yield Finding("jtop", "info", "jetson-stats is not used: set power.jtop = true to use it")
    elif facts.jtop.value is None:
        repair = "sudo pip install jetson-stats and sudo systemctl start jtop, or set [power] jtop = false"
        yield Finding("jtop", "warning", str(facts.jtop.reason), repair)
    else:
        yield Finding("jtop", "ok", f"jetson-stats {facts.jtop} answers")
    yield from _sensors(settings)


def _sensors(settings: Power) -> Iterator[Finding]:
    """Read each rail (a sensor of one supply), and check that idle power was measured here in this power mode."""
    from jetsel.base.config import power_folder
    from jetsel.power.finding import check_board, find_rails
    from jetsel.power.idle import REPAIR
    from jetsel.power.meter import idle_power_here

    check_board(settings)
    found_rails = find_rails(settings)
    found_rails.close()
    table = "unknown board" if found_rails.board is None else found_rails.board.name
    rails = ", ".join(rail.name for rail in found_rails.rails) or "none"
    yield Finding("sensors", "ok" if found_rails.rails else "info", f"{table}: {rails}")
    for rail in found_rails.dropped:
        yield Finding(rail.name, "warning", f"it is not read: {rail.reason}")
    if found_rails.reason is not None:  # a missing sensor is no fault if the configuration requires none
        is_required = (
            bool(found_rails.rails) or settings.sensor not in ("auto", "none") or settings.budget_w is not None
        )
        yield Finding("total", "warning" if is_required else "info", f"energies are unknown: {found_rails.reason}")
        return
    yield Finding("total", "ok", " + ".join(found_rails.total_of))
    idle_power = idle_power_here(settings, power_folder(settings))
    if isinstance(idle_power, str):
        yield Finding("idle power", "warning", idle_power.removesuffix(f": {REPAIR}"), REPAIR)
        return
    idle, doubt = idle_power
    description = f"{idle.mean_w:.3g} W ± {idle.half_width_w:.2g} W, measured {idle.measured_at}"
    if doubt is None:
        yield Finding("idle power", "ok", description)
    else:
        yield Finding("idle power", "warning", f"{description}; {doubt}", REPAIR)


def models(subject: Subject) -> Iterator[Finding]:
    """Read and run every served model, and check the calibration of each family."""
    from jetsel.cli.terminal import milliseconds
    from jetsel.engines import BACKENDS
    from jetsel.engines.trying import try_run
    from jetsel.zoo import verify
    from jetsel.zoo.onnx_model import model_in

    for unknown in sorted(subject.backends - set(BACKENDS)):
        yield Finding("backend", "failed", f"{unknown!r} is not a backend", f"name one of these: {', '.join(BACKENDS)}")
    for name, family in subject.served.families.items():
        classes = len(family.family.labels.names)
        yield Finding(f"family {name}", "ok", f"{', '.join(family.models)}; {classes} classes")
        for model in family.models.values():
            try:
                model_in(verify(model), str(model.path))
                latency_ms = try_run(model.weights(classes), subject.config.models.threads).latency_ms
            except JetselError as error:  # noqa: PERF203  # running a model takes far longer
                yield Finding(model.manifest.name, "failed", str(error).removeprefix(f"{model.manifest.name} "))
            else:
                description = f"{milliseconds(latency_ms)} ms per image on ONNX Runtime"
                yield Finding(model.manifest.name, "ok", description)
        in_use = family.in_use
        repair = None if in_use.calibration else "jetsel calibrate with images of your own"
        state: State = "ok" if in_use.calibration else "info" if in_use.refused is None else "warning"
        yield Finding(f"calibration of {name}", state, str(in_use), repair)
    for line in subject.site.broken:
        yield Finding("left out", "warning", line, "correct that file, or remove it")


def tensorrt(subject: Subject) -> Iterator[Finding]:
    """Check the Python that runs TensorRT, and the engine of each model on TensorRT."""
    report = subject.tensorrt
    if isinstance(report, JetselError):
        description, _, repair = str(report).partition("; ")
        yield Finding("Python", "failed" if "tensorrt" in subject.backends else "info", description, repair or None)
        return
    libraries = ", ".join(f"{name} {version}" for name, version in report["libraries"].items())
    description = f"{report['interpreter']}, Python {report['python']}, TensorRT {report['version']}, {libraries}"
    yield Finding("Python", "ok", f"{description}, {report['gpu']['name'] if report['gpu'] else 'no GPU'}")
    if "tensorrt" in subject.backends:
        yield from _engines(subject, report)


def _engines(subject: Subject, report: dict[str, Any]) -> Iterator[Finding]:
    """Check the engine of each model on TensorRT. report: what Subject.tensorrt holds."""
    from jetsel.cli.models.candidates import Candidate, runs_on_tensorrt
    from jetsel.engines.building.plans import find

    for served in subject.served.families.values():
        for model in (model for model in served.models.values() if runs_on_tensorrt(model, subject.config)):
            name = model.manifest.name
            try:
                engine = find(subject.config.host, Candidate(served.family, model).weights, report).record
            except JetselError as error:
                description, _, repair = str(error).removeprefix(f"{name}: ").rpartition("; ")
                yield Finding(name, "failed", description, repair)
            else:
                description = f"engine of {engine.key.precision}, TensorRT {engine.key.tensorrt}, built {engine.built}"
                yield Finding(name, "ok", description)
