"""What a daemon would serve with this configuration, and whether one does."""

from __future__ import annotations

import os
from collections.abc import Iterator

from jetsel import __version__
from jetsel.cli.doctoring.finding import Finding, State, Subject
from jetsel.errors import JetselError

STATUS_MS = 5000.0  # a daemon under load answers late


def models(subject: Subject) -> Iterator[Finding]:
    """Look at every model that is to be served: its manifest, its weights, and its backend."""
    from jetsel.engines import BACKENDS
    from jetsel.errors import ManifestError
    from jetsel.zoo import verify

    for unknown in sorted(subject.used - set(BACKENDS)):
        known = f"known here: {', '.join(BACKENDS)}"
        yield Finding(
            "backend", "failed", f"{unknown!r} is no backend", f"correct [models] backend or backends; {known}"
        )
    found = subject.generation
    if isinstance(found, JetselError):
        yield Finding("served", "failed", f"no daemon would start: {found}", "correct that key in jetsel.toml")
        return
    for family in found.families.values():
        said = f"{', '.join(family.models)}; {len(family.labels.names)} classes"
        yield Finding(f"family {family.name}", "ok", said)
        for name, model in family.models.items():
            try:
                verify(model)
            except ManifestError as error:  # noqa: PERF203  # hashing takes longer
                yield Finding(name, "failed", str(error), "put the model's own file there")
    for line in found.broken:
        yield Finding("left out", "warning", line, "correct that file, or remove it")


def calibrations(subject: Subject) -> Iterator[Finding]:
    """Look which calibration each family would be served with."""
    found = subject.generation
    if isinstance(found, JetselError):
        yield Finding("in use", "info", "not known: no daemon would start")
        return
    for name, family in found.families.items():
        used = family.in_use
        if used.refused is not None:
            yield Finding(f"family {name}", "warning", str(used), "jetsel calibrate, or jetsel calibration rollback")
        elif used.calibration is None:
            said = f"{used}: the most expensive model answers"
            yield Finding(f"family {name}", "info", said, "jetsel calibrate with photographs of your own")
        else:
            yield Finding(f"family {name}", "ok", str(used))


def daemon(subject: Subject) -> Iterator[Finding]:
    """Look whether a daemon answers, and what it says of itself."""
    from jetsel.client import Client
    from jetsel.endpoint import VARIABLE
    from jetsel.errors import NoDaemonError

    where = None if os.environ.get(VARIABLE) else subject.config.server.endpoint
    try:
        with Client(where, timeout_ms=STATUS_MS) as client:
            reply = client.status()
    except JetselError as error:
        said, _, repair = str(error).partition(": ")
        state: State = "warning" if isinstance(error, NoDaemonError) else "failed"
        yield Finding("answers", state, said, repair or "see its log: journalctl -u jetsel")
        return
    progress = f", {reply.progress}" if reply.progress else ""
    yield Finding("answers", "ok", f"{', '.join(reply.endpoints)}: {reply.state}{progress}, process {reply.pid}")
    if reply.version != __version__:
        said = f"it is jetsel {reply.version}, this command is {__version__}"
        yield Finding("version", "warning", said, "sudo systemctl restart jetsel")
    for family in reply.families:
        for model in family.models:
            if model.state == "unavailable":
                yield Finding(
                    f"{family.name}: {model.name}",
                    "failed",
                    f"{model.state}: {model.reason}",
                    "jetsel reload, once that is repaired",
                )
