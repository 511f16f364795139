"""Run an engine that was just built beside ONNX Runtime, and say whether it may be used."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.engines.base import EngineFailedError
from jetsel.engines.building.plans import Check, Precision
from jetsel.engines.hosting.process import HostProcess
from jetsel.engines.onnx import OnnxEngine
from jetsel.weights import Weights

Array = NDArray[np.float32]
Tell = Callable[[str, float | None], None]
Run = Callable[[Array], tuple[Array, float | None]]

_TOGETHER = 8  # photographs, where a model takes any number
MODEL = 1  # what a builder's own host calls the one model that it loads
RUN_S = 120.0  # the first run of a shape may still be preparing kernels
ENOUGH = 50  # photographs: with fewer, one that two classes share decides about an engine
LEAST_AGREEMENT = {"fp32": 0.98, "fp16": 0.98, "int8": 0.95}
LARGEST_DIFFERENCE = {"fp32": 0.05, "fp16": 0.05, "int8": 0.25}
"""Of the spread of ONNX Runtime's logits, where photographs are few. fp32 may run as TF32, with the digits of fp16."""

_ALIGNED_BYTES = 256


class Inputs(Protocol):
    """Photographs as one model takes them, made anew at each pass: each (1, 3, height, width) float32."""

    @property
    def source(self) -> str:
        """Which photographs they are, for people."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Array]: ...


def compare(run: Run, max_batch: int | None, weights: Weights, inputs: Inputs, tell: Tell) -> Check:
    """Run every photograph by `run`, and by ONNX Runtime with the model's own file.

    run: takes (n, 3, height, width) float32, n at most `max_batch` (None: any), and returns logits (n, classes) and the
    device's own ms. Each photograph is run alone, and the first ones together as well. Raises what `run` does, and
    EngineFailedError.
    """
    reference = OnnxEngine(weights.name, weights.path, concurrency=1, threads=os.cpu_count() or 1)
    together = min(max_batch or _TOGETHER, len(inputs))
    first: list[Array] = []
    expected: list[Array] = []
    differences: list[float] = []
    times_ms: list[float] = []
    agreed = 0
    for number, photograph in enumerate(inputs):
        tell("comparing with ONNX Runtime", number / len(inputs))
        expected.append(reference.infer(photograph).logits)
        found, device_ms = run(photograph)
        agreed += int(found.argmax() == expected[-1].argmax())
        differences.append(float(np.abs(found - expected[-1]).max()))
        if device_ms is not None:
            times_ms.append(device_ms)
        if number < together:
            first.append(photograph)
    found, _ = run(np.concatenate(first))
    differences.append(float(np.abs(found - np.concatenate(expected[:together])).max()))
    return Check(
        photographs=len(inputs),
        source=inputs.source,
        agreement=agreed / len(inputs),
        largest_difference=max(differences),
        spread=float(np.ptp(np.concatenate(expected))),
        device_ms=statistics.median(times_ms) if times_ms else None,
    )


def objection(check: Check, precision: Precision) -> str | None:
    """Say why a model with these figures is not used, None where it is."""
    on = f"on {check.photographs} photographs ({check.source})"
    if check.photographs >= ENOUGH:
        least = LEAST_AGREEMENT[precision]
        if check.agreement >= least:
            return None
        return f"{on} its first answer is ONNX Runtime's in {check.agreement:.1%}, and {least:.0%} is the least"
    share = LARGEST_DIFFERENCE[precision]
    if check.largest_difference <= share * check.spread:
        return None
    return (
        f"{on} a logit differs by {check.largest_difference:.3g} from ONNX Runtime's, and {share * check.spread:.3g} "
        f"is the most: {share:.0%} of their spread, which decides where photographs are fewer than {ENOUGH}"
    )


def in_process(name: str, path: Path) -> Run:
    """Return how an ONNX file is run by ONNX Runtime; raises EngineFailedError where it does not load."""
    engine = OnnxEngine(name, path, concurrency=1, threads=os.cpu_count() or 1)
    return lambda batch: (engine.infer(batch).logits, None)


def hosted(process: HostProcess, weights: Weights, loaded: Mapping[str, Any]) -> Run:
    """Return how the engine is run that the process has loaded as MODEL; `loaded` is its reply to that.

    A run raises EngineFailedError, or LinkBrokenError where the process is gone.
    """
    width = weights.classes + (loaded.get("embedding_width") or 0)

    def run(batch: Array) -> tuple[Array, float | None]:
        output_at = -(-batch.nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES
        output_bytes = 4 * len(batch) * width
        region = process.memory.take(output_at + output_bytes)
        try:
            region.view(region.offset, batch.shape)[:] = batch
            output_at += region.offset
            region.view(output_at, (output_bytes // 4,)).fill(np.nan)  # what is not written is no answer
            request = {
                "model": MODEL,
                "input": {"offset": region.offset, "shape": batch.shape},
                "output": {"offset": output_at, "bytes": output_bytes},
            }
            reply = process.exchange("infer", request, RUN_S)
            if not reply.get("ok"):
                raise EngineFailedError(f"{weights.name}: {reply.get('message')}")
            logits = region.view(reply["logits"]["offset"], (len(batch), weights.classes)).copy()
        finally:
            process.memory.give_back(region)
        if not np.isfinite(logits).all():
            raise EngineFailedError(f"{weights.name}: its engine answers numbers that are not finite: build it as fp32")
        return logits, reply.get("device_ms")

    return run
