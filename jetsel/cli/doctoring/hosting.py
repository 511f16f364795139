"""The engine host: which interpreter runs it, why the others do not, and what its TensorRT and its GPU can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jetsel.cli.doctoring.finding import HOSTED, Finding, Subject, size

if TYPE_CHECKING:
    from jetsel.engines.hosting.interpreters import Probe


def interpreters(subject: Subject) -> Iterator[Finding]:
    """Look at every candidate, for each backend that runs in the engine host."""
    from jetsel.engines.hosting.repairs import NAME_ANOTHER

    for configured, backend in HOSTED.items():
        taken = subject.taken(backend)
        if taken is not None:
            yield Finding(backend, "ok", f"hosted by {taken.path}")
        elif configured in subject.used:
            repair = "repair one of those below" if subject.probes[backend] else f"install Python 3, or {NAME_ANOTHER}"
            yield Finding(backend, "failed", "no interpreter here can host it, and the configuration uses it", repair)
        else:
            yield Finding(backend, "info", "no interpreter here can host it; the configuration does not use it")
        for probe in subject.probes[backend]:
            yield _candidate(backend, probe, taken, is_used=configured in subject.used)


def tensorrt(subject: Subject) -> Iterator[Finding]:
    """Look at TensorRT's version, at the GPU, and whether that one is good at the configured precision."""
    taken = subject.taken("tensorrt")
    if taken is None:
        yield Finding("version", "info", "not known: no interpreter here can host it")
        return
    yield Finding("version", "ok", taken.modules["tensorrt"].version or "it does not say")
    gpu = taken.gpu
    if gpu is None:
        yield Finding("gpu", "info", "the host tells of none")
        return
    kind = "integrated" if gpu.get("is_integrated") else "discrete"
    memory = gpu.get("memory_bytes")
    shown = "memory not known" if memory is None else size(memory)
    yield Finding(
        "gpu", "ok", f"{gpu.get('name')}, compute capability {gpu.get('compute_capability')}, {kind}, {shown}"
    )
    wanted = subject.config.host.precision
    for precision in ("fp16", "int8"):
        fast = gpu.get(f"fast_{precision}")
        if fast is None:  # TensorRT 11 has no such question any more
            yield Finding(precision, "info", "not known: this TensorRT does not tell")
        elif fast:
            yield Finding(precision, "ok", "this GPU is fast at it")
        elif wanted == precision and "tensorrt" in subject.used:
            repair = f'set [host] precision = "{"fp32" if precision == "fp16" else "fp16"}", then: jetsel models build'
            yield Finding(precision, "warning", "this GPU is not fast at it, and host.precision asks for it", repair)
        else:
            yield Finding(precision, "info", "this GPU is not fast at it")


def _candidate(backend: str, probe: Probe, taken: Probe | None, *, is_used: bool) -> Finding:
    name = f"{backend}: {probe.path}"
    if not probe.usable:
        version = "" if probe.python is None else f"Python {probe.python}; "
        is_needed = taken is None and (is_used or probe.python is not None)
        repair = probe.repair if is_needed or probe.hidden else None  # what nobody needs is not to be repaired
        return Finding(name, "info", f"refused: {version}{probe.reason}", repair)
    modules = ", ".join(f"{name} {module.version}" for name, module in probe.modules.items())
    return Finding(name, "ok", f"{'taken' if probe is taken else 'would do'}: Python {probe.python}, {modules}")
