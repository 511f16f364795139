"""Run a model that was just built beside ONNX Runtime, and say whether it may be used."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from jetsel.base.host_settings import Precision
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building.plans import Check
from jetsel.engines.onnx import OnnxEngine

Array = NDArray[np.float32]
T_co = TypeVar("T_co", covariant=True)
Run = Callable[[Array], tuple[Array, float | None]]
"""Takes (n, 3, height, width) float32, and returns logits (n, classes) float32 and the device's own ms or None."""

_TOGETHER = 8  # photographs, if a model takes any number
ENOUGH = 50  # photographs: with fewer, one that two classes share decides about an engine
LEAST_AGREEMENT = {"fp32": 0.98, "fp16": 0.98, "int8": 0.95}
LARGEST_DIFFERENCE = {"fp32": 0.05, "fp16": 0.05, "int8": 0.25}
"""Of the spread of ONNX Runtime's logits, if photographs are few. fp32 may run as TF32, with the digits of fp16."""


class Photographs(Protocol[T_co]):
    """Photographs, read anew at each pass."""

    @property
    def source(self) -> str:
        """Which photographs they are, for people."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


Inputs = Photographs[Array]
"""As one model takes them: each (1, 3, height, width) float32."""


def compare(run: Run, max_batch: int | None, weights: Weights, inputs: Inputs) -> Check:
    """Run every photograph by `run`, and by ONNX Runtime with the model's own file.

    run: takes at most `max_batch` photographs (None: any number). Each photograph is run alone, and the first ones
    together as well. Raises what `run` does, and EngineFailedError.
    """
    reference = OnnxEngine(weights.name, weights.path, concurrency=1, threads=os.cpu_count() or 1)
    together = min(max_batch or _TOGETHER, len(inputs))
    first: list[Array] = []
    expected: list[Array] = []
    differences: list[float] = []
    times_ms: list[float] = []
    agreed = 0
    for number, photograph in enumerate(inputs):
        expected.append(reference.infer(photograph).logits)
        output, device_ms = run(photograph)
        if not np.isfinite(output).all():
            raise EngineFailedError(f"{weights.name}: its engine returns numbers that are not finite: build it as fp32")
        agreed += int(output.argmax() == expected[-1].argmax())
        differences.append(float(np.abs(output - expected[-1]).max()))
        if device_ms is not None:
            times_ms.append(device_ms)
        if number < together:
            first.append(photograph)
    output, _ = run(np.concatenate(first))
    differences.append(float(np.abs(output - np.concatenate(expected[:together])).max()))
    return Check(
        photographs=len(inputs),
        source=inputs.source,
        agreement=agreed / len(inputs),
        largest_difference=max(differences),
        spread=float(np.ptp(np.concatenate(expected))),
        device_ms=statistics.median(times_ms) if times_ms else None,
    )


def objection(check: Check, precision: Precision) -> str | None:
    """Say why a model with these figures is not used, None if it is."""
    on = f"on {check.photographs} images ({check.source})"
    if check.photographs >= ENOUGH:
        least = LEAST_AGREEMENT[precision]
        if check.agreement >= least:
            return None
        return f"{on} its top-1 agreement with ONNX Runtime is {check.agreement:.1%}, and the minimum is {least:.0%}"
    most = LARGEST_DIFFERENCE[precision] * check.spread
    if check.largest_difference <= most:  # a difference that is no number is larger than any
        return None
    return (
        f"{on} a logit differs by {check.largest_difference:.3g} from ONNX Runtime's; the limit "
        f"for fewer than {ENOUGH} images is {most:.3g}"
    )
