"""What a daemon would serve with this configuration: models, calibrations, and the engines that TensorRT runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jetsel.cli.checks import Finding, State, Subject
from jetsel.errors import JetselError


def models(subject: Subject) -> Iterator[Finding]:
    """Read and run every model that is to be served, and look at the calibration of each family."""
    from jetsel.cli.terminal import milliseconds
    from jetsel.engines import BACKENDS
    from jetsel.engines.trying import try_run
    from jetsel.zoo import verify
    from jetsel.zoo.onnx_model import model_in

    for unknown in sorted(subject.used - set(BACKENDS)):
        yield Finding("backend", "failed", f"{unknown!r} is no backend", f"name one of these: {', '.join(BACKENDS)}")
    for name, family in subject.snapshot.families.items():
        yield Finding(f"family {name}", "ok", f"{', '.join(family.models)}; {len(family.labels.names)} classes")
        for model in family.models.values():
            try:
                model_in(verify(model), str(model.path))
                latency_ms = try_run(model.weights(len(family.labels.names)), subject.config.models.threads).latency_ms
            except JetselError as error:  # noqa: PERF203  # running takes longer
                yield Finding(model.manifest.name, "failed", str(error).removeprefix(f"{model.manifest.name} "))
            else:
                said = f"{milliseconds(latency_ms)} ms per image on ONNX Runtime"
                yield Finding(model.manifest.name, "ok", said)
        used = family.in_use
        repair = None if used.calibration else "jetsel calibrate with photographs of your own"
        state: State = "ok" if used.calibration else "info" if used.refused is None else "warning"
        yield Finding(f"calibration of {name}", state, str(used), repair)
    for line in subject.snapshot.broken:
        yield Finding("left out", "warning", line, "correct that file, or remove it")


def tensorrt(subject: Subject) -> Iterator[Finding]:
    """Look which Python runs TensorRT, or what it lacks, and for the engine of each model that runs on it."""
    found = subject.tensorrt
    if isinstance(found, JetselError):
        said, _, repair = str(found).partition("; ")
        yield Finding("Python", "failed" if "tensorrt" in subject.used else "info", said, repair or None)
        return
    libraries = ", ".join(f"{name} {version}" for name, version in found["libraries"].items())
    said = f"{found['interpreter']}, Python {found['python']}, TensorRT {found['version']}, {libraries}"
    yield Finding("Python", "ok", f"{said}, {found['gpu']['name'] if found['gpu'] else 'no GPU'}")
    if "tensorrt" in subject.used:
        yield from _engines(subject, found)


def _engines(subject: Subject, about: dict[str, Any]) -> Iterator[Finding]:
    """about: what the engine host tells of its TensorRT and its GPU."""
    from jetsel.cli.models.candidates import on_tensorrt
    from jetsel.config import host_settings
    from jetsel.engines.building.plans import find

    host = subject.config.host
    for family, served in subject.snapshot.families.items():
        for model in on_tensorrt(family, served.models.values(), len(served.labels.names), subject.config):
            name = model.name
            try:
                made = find(host_settings(host), model.weights, about).record
            except JetselError as error:
                said, _, repair = str(error).removeprefix(f"{name}: ").rpartition("; ")
                yield Finding(name, "failed", said, repair)
            else:
                said = f"engine of {made.key.precision}, TensorRT {made.key.tensorrt}, built {made.built}"
                yield Finding(name, "ok", said)
