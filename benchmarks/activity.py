"""A power trace with the timing of real work: photographs decoded, examined and classified here, with pauses.

The times are this machine's, measured while it works; the watts of each kind of work are assumed, between those of an
idle and a busy board, since this machine has no sensor.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np

from benchmarks.bare import LIMITS
from benchmarks.photographs import photographs
from benchmarks.power_model import BUSY_W, IDLE_W, Signal
from jetsel import image
from jetsel.engines.onnx import OnnxEngine
from jetsel.features import extract
from jetsel.power.trace import Writer
from jetsel.zoo import STARTER, scan

DECODE_W, FEATURES_W = 4.5, 5.2
MODELS_W = (5.8, BUSY_W)  # of the cheapest and of the dearest model
PAUSE_S = 0.02  # between two requests, in the mean
RIPPLE_W = 0.15  # standard deviation of each piece's power


def activity(length_s: float, draw: np.random.Generator) -> Signal:
    """Work for about so long and return its power."""
    (family,) = scan([STARTER]).families.values()
    engines = [OnnxEngine(model.manifest.name, model.path, concurrency=1, threads=1) for model in family.models]
    specs = [model.manifest.input for model in family.models]
    models_w = np.linspace(*MODELS_W, len(engines))
    times_s, watts = [0.0], []
    began_s = time.perf_counter()

    def did(power_w: float) -> None:
        now_s = time.perf_counter() - began_s
        times_s.append(now_s)
        watts.append(power_w + draw.normal(0, RIPPLE_W))

    for data in itertools.cycle(photographs(None).files):
        photograph = image.decode(data, LIMITS, family.decode_px)
        did(DECODE_W)
        extract(photograph.bgr)
        did(FEATURES_W)
        for number in range(1 + int(draw.integers(len(engines)))):
            engines[number].infer(image.model_input(photograph, specs[number]))
            did(float(models_w[number]))
        time.sleep(draw.exponential(PAUSE_S))
        did(IDLE_W)
        if times_s[-1] > length_s:
            break
    for engine in engines:
        engine.close()
    return Signal("recorded", np.array(times_s), np.array(watts))


def write(signal: Signal, path: Path, rail: str) -> None:
    """Write it as a trace of one rail that is the total."""
    with path.open("w") as file:
        writer = Writer(file, None, [rail], [rail], [None])
        for at_s, power_w in zip(signal.times_s, signal.watts, strict=False):
            writer.row(float(at_s), [float(power_w)])
