"""Compares a model that was just built with ONNX Runtime, and decides whether it may be used."""

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
"""Takes (n, 3, height, width) float32; returns logits (n, classes) float32, and the device's own time in ms or None."""

_BATCH_SIZE = 8  # images, if the model takes any number
ENOUGH = 50  # images for LEAST_AGREEMENT: with fewer, one ambiguous image could decide
LEAST_AGREEMENT = {"fp32": 0.98, "fp16": 0.98, "int8": 0.95}
LARGEST_DIFFERENCE = {"fp32": 0.05, "fp16": 0.05, "int8": 0.25}
"""As a share of the range of ONNX Runtime's logits, if images are few. fp32 may run as TF32, with the precision of
fp16."""


class Photographs(Protocol[T_co]):
    """A collection of images, which are read again at each iteration."""

    @property
    def source(self) -> str:
        """Where the images come from, for error messages and records."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


Inputs = Photographs[Array]
"""Images as input of one model: each (1, 3, height, width) float32."""


def compare(run: Run, max_batch: int | None, weights: Weights, inputs: Inputs) -> Check:
    """Run every image with `run`, the new engine, and with ONNX Runtime on the model's file; return the differences.

    run: takes at most `max_batch` images (None: any number). Each image runs alone, and the first ones also as a batch.
    Raises what `run` raises, and EngineFailedError.
    """
    reference = OnnxEngine(weights.name, weights.path, concurrency=1, threads=os.cpu_count() or 1)
    batch_size = min(max_batch or _BATCH_SIZE, len(inputs))
    batch: list[Array] = []
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
        if number < batch_size:
            batch.append(photograph)
    output, _ = run(np.concatenate(batch))
    differences.append(float(np.abs(output - np.concatenate(expected[:batch_size])).max()))
    return Check(
        photographs=len(inputs),
        source=inputs.source,
        agreement=agreed / len(inputs),
        largest_difference=max(differences),
        spread=float(np.ptp(np.concatenate(expected))),
        device_ms=statistics.median(times_ms) if times_ms else None,
    )


def reason_to_reject(check: Check, precision: Precision) -> str | None:
    """Return why an engine of this precision with these results may not be used; None if it may."""
    where = f"on {check.photographs} images ({check.source})"
    if check.photographs >= ENOUGH:
        lowest = LEAST_AGREEMENT[precision]
        if check.agreement >= lowest:
            return None
        agreement = f"{where} its top-1 agreement with ONNX Runtime is {check.agreement:.1%}"
        return f"{agreement}, and the minimum is {lowest:.0%}"
    limit = LARGEST_DIFFERENCE[precision] * check.spread
    if check.largest_difference <= limit:  # false for NaN
        return None
    return (
        f"{where} a logit differs by {check.largest_difference:.3g} from ONNX Runtime's; the limit "
        f"for fewer than {ENOUGH} images is {limit:.3g}"
    )
