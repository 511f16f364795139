"""The engines that TensorRT runs: which models need one, whether one stands that fits, and what builds it."""

from __future__ import annotations

from collections.abc import Iterator

from jetsel.cli.doctoring.finding import Finding, State, Subject
from jetsel.config import engines_folder
from jetsel.errors import JetselError

_UNKNOWN = "not known: "


def engines(subject: Subject) -> Iterator[Finding]:
    """Look for the engine of each model that the configuration runs on tensorrt."""
    from jetsel.daemon.building import on_tensorrt
    from jetsel.engines.base import EngineFailedError
    from jetsel.engines.building.plans import find

    served = subject.generation
    if isinstance(served, JetselError):
        yield Finding("engines", "info", f"{_UNKNOWN}no daemon would start")
        return
    candidates = [
        candidate
        for name, family in served.families.items()
        for candidate in on_tensorrt(name, family.models.values(), len(family.labels.names), subject.config)
    ]
    if not candidates:
        yield Finding("engines", "info", "none is needed: no model runs on tensorrt")
        return
    taken = subject.taken("tensorrt")
    if taken is None or taken.gpu is None:
        why = "no interpreter here can host TensorRT" if taken is None else "the host sees no GPU"
        yield Finding("engines", "info", f"{_UNKNOWN}{why}", "repair what is told of the engine host")
        return
    about = {"version": taken.modules["tensorrt"].version, "gpu": taken.gpu}  # as the host says hello
    host = subject.config.host
    for candidate in candidates:
        name = candidate.model.manifest.name
        try:
            plan = find(engines_folder(host), candidate.weights, host, about)
        except EngineFailedError as error:
            said, _, repair = str(error).removeprefix(f"{name}: ").rpartition("; ")
            state: State = "failed"
            if host.build_at_start:
                state, said = "warning", f"{said}; the daemon builds it at its start, before it answers"
            yield Finding(name, state, said, repair)
        else:
            record = plan.record
            size_mb = record.plan_bytes / 1e6
            yield Finding(name, "ok", f"{plan.path}: {record.key.precision}, {size_mb:.1f} MB, built {record.built}")
