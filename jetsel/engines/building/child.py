"""The engine host that builds: a process for one engine, with limits of its own, whose death is told with its cause."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jetsel.engines.base import EngineFailedError
from jetsel.engines.building import plan_folder
from jetsel.engines.building.plans import Key
from jetsel.engines.building.preparing import halve
from jetsel.engines.building.trial import MODEL, Inputs, Tell, compare, in_process, objection
from jetsel.engines.hosting.link import Feed, LinkBrokenError, LinkTimeoutError
from jetsel.engines.hosting.process import HostProcess, Start
from jetsel.weights import Weights

BATCH = 8  # photographs that a calibration is handed at a time
END_S = 1.0  # for a host that broke off to end by itself, so that its signal can be told
LOOK_S = 0.1


@dataclass(frozen=True)
class Patience:
    """How long one build may take: until the host says hello, without a word of progress, and in all."""

    hello_s: float = 60.0
    silence_s: float = 900.0
    total_s: float = 14_400.0


PATIENCE = Patience()


@dataclass(frozen=True)
class Files:
    """Where a build reads and writes. source: the ONNX file; half: where its half-precision twin goes if one is due."""

    source: Path
    half: Path
    plan: Path
    timing_cache: Path
    calibration_cache: Path | None


@contextmanager
def build_host(start: Start, weights: Weights, patience: Patience, stop: threading.Event) -> Iterator[HostProcess]:
    """Give a host of its own to one build, and end it, whatever happens.

    stop: set by whoever does not want the build any more. Raises EngineFailedError where the host does not start, and
    where it dies or is out of time in the block: with its signal and what helps.
    """
    process = HostProcess(start)
    guard = _Guard(process, patience.total_s, stop)
    try:
        yield process
        guard.stand_down()
        process.leave()
    except LinkTimeoutError as error:
        raise EngineFailedError(
            f"{weights.name}: its build gave no sign of life for {patience.silence_s:g} s and was killed ({error}): "
            "lower [host] workspace_mb, and see what it said last"
        ) from None
    except LinkBrokenError as error:
        guard.stand_down()
        how = guard.why or f"died: {error} ({process.kill(END_S)}): "
        raise EngineFailedError(f"{weights.name}: its build {how}{'' if guard.why else _against(how)}") from None
    finally:
        guard.stand_down()
        process.kill()


class _Guard:
    """Kills a build that is out of time or not wanted any more; `why` says so."""

    def __init__(self, process: HostProcess, total_s: float, stop: threading.Event) -> None:
        self.why: str | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(process.pid, total_s, stop), daemon=True)
        self._thread.start()

    def stand_down(self) -> None:
        """Kill nothing from now on: the process may be waited for, and its number given to another one."""
        self._done.set()
        self._thread.join()

    def _watch(self, pid: int, total_s: float, stop: threading.Event) -> None:
        give_up = time.monotonic() + total_s
        while not self._done.wait(LOOK_S):
            if stop.is_set():
                self.why = "was stopped"
            elif time.monotonic() > give_up:
                self.why = (
                    f"took longer than {total_s:g} s and was killed: allow it more with --limit-s, or lower [host] "
                    "workspace_mb"
                )
            else:
                continue
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return


def write_plan(
    process: HostProcess,
    key: Key,
    weights: Weights,
    files: Files,
    inputs: Inputs,
    calibration: Inputs | None,
    patience: Patience,
    tell: Tell,
) -> tuple[dict[str, Any], list[str]]:
    """Have the plan written; return the host's reply and what is worth noting.

    A TensorRT that takes fp16 only from a file in half precision is given one, compared with the model's own on
    `inputs`. calibration: None where no photographs set the scales of int8. Raises EngineFailedError, LinkBrokenError.
    """
    request = {
        "onnx": str(files.source),
        "precision": key.precision,
        "is_half": False,
        "has_qdq": key.precision == "int8" and calibration is None,
        "max_batch": key.max_batch,
        "input_px": [weights.height_px, weights.width_px],
        "workspace_bytes": key.workspace_bytes,
        "options": {"lean_tactics": key.lean_tactics},
        "timing_cache": str(files.timing_cache),
        "calibration_cache": None if files.calibration_cache is None else str(files.calibration_cache),
        "plan": str(files.plan),
    }
    notes = []
    with _feeding(process, calibration) as (place, feed):
        request["input"] = place
        reply = process.exchange("build", request, patience.silence_s, tell, feed)
        if reply.get("code") == "unsupported" and key.precision == "fp16":
            notes.append(_halved(weights, files, inputs, tell))
            request |= {"onnx": str(files.half), "is_half": True}
            reply = process.exchange("build", request, patience.silence_s, tell, feed)
    built = _good(weights, reply)
    return built, [*notes, *(str(note) for note in built.get("notes") or [])]


def load_plan(
    process: HostProcess,
    key: Key,
    weights: Weights,
    plan: Path,
    built: Mapping[str, Any],
    patience: Patience,
    tell: Tell,
) -> dict[str, Any]:
    """Load what was written into the same process; return its reply. Raises EngineFailedError, LinkBrokenError."""
    try:
        written = plan_folder.sha256_of(plan)
    except OSError as fault:
        raise plan_folder.not_saved(plan.parent, fault) from None
    if written != built.get("sha256"):
        raise EngineFailedError(f"{weights.name}: {plan} does not hold what was written to it: check the disk")
    request = {
        "model": MODEL,
        "name": weights.name,
        "path": str(plan),
        "sha256": written,
        "classes": weights.classes,
        "input_px": [weights.height_px, weights.width_px],
        "threads": 1,
        "made_for": {"tensorrt": key.tensorrt, "gpu": key.gpu, "compute_capability": key.compute_capability},
    }
    return _good(weights, process.exchange("load", request, patience.silence_s, tell))


@contextmanager
def _feeding(process: HostProcess, calibration: Inputs | None) -> Iterator[tuple[dict[str, int], Feed | None]]:
    """Give the place in the shared memory where batches to calibrate with go, and what puts the next one there."""
    if calibration is None:
        yield {"offset": 0, "bytes": 0}, None
        return
    photographs = iter(calibration)
    first = next(photographs)
    waiting = [first]
    region = process.memory.take(BATCH * first.nbytes)

    def feed() -> dict[str, Any]:
        while len(waiting) < BATCH and (photograph := next(photographs, None)) is not None:
            waiting.append(photograph)
        shape = (len(waiting), *first.shape[1:])
        if waiting:
            np.concatenate(waiting, out=region.view(region.offset, shape))
            waiting.clear()
        return {"count": shape[0], "shape": shape}

    try:
        yield {"offset": region.offset, "bytes": region.size}, feed
    finally:
        process.memory.give_back(region)


def _halved(weights: Weights, files: Files, inputs: Inputs, tell: Tell) -> str:
    """Write the half-precision twin, compare it, and say how it did; raises EngineFailedError."""
    halve(weights, files.source, files.half, tell)
    check = compare(in_process(weights.name, files.half), None, weights, inputs, tell)
    refused = objection(check, "fp16")
    if refused is not None:
        raise EngineFailedError(
            f"{weights.name}: in half precision it is not the same model: {refused}; build it with --precision fp32"
        )
    return (
        f"built from its ONNX file in half precision, which answers as the model's own on {check.agreement:.1%} of "
        f"{check.photographs} photographs; the largest difference of a logit is {check.largest_difference:.3g}"
    )


def _good(weights: Weights, reply: dict[str, Any]) -> dict[str, Any]:
    if not reply.get("ok"):
        raise EngineFailedError(f"{weights.name}: {reply.get('message')}")
    return reply


def _against(how: str) -> str:
    """Say what helps against such an end."""
    if "SIGKILL" in how:
        return "most likely no memory was left: lower [host] workspace_mb, or stop what else runs"
    return (
        "lower [host] workspace_mb, and see what it said last; builds are known to die so: NVIDIA/TensorRT issue 1404"
    )
