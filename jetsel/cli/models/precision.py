"""Which one of a float model and the same model in 8 bits `jetsel models pull` adds: the faster one on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from jetsel.base.config import Config, host_settings
from jetsel.base.weights import Weights
from jetsel.calibrate.record.durations import run_by_turns
from jetsel.cli.models.candidates import BACKEND
from jetsel.engines import Backends, warm_up
from jetsel.engines.building.builder import Builder
from jetsel.power.machine import Machine
from jetsel.zoo.manifest import PrecisionChoice
from jetsel.zoo.pretrained import Rung, RungPair, drawn

CLEARLY_FASTER = 0.9
"""Of the other one's time, at most: less may be noise, and 8 bits cost a little accuracy."""
LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # of one run of each model
WARM_UPS = 3
BUDGET_S = 15.0  # after which no further round begins; loading takes the rest of 20 s


def choose(pair: RungPair, values: Config, former: PrecisionChoice | None) -> tuple[Rung, PrecisionChoice]:
    """Return the rung to add, and why. former: why the model in 8 bits that is there was chosen, None if none is.

    With TensorRT nothing is timed, since an engine takes minutes to build: the float model is built as FP16, and a
    model in 8 bits can be built only as int8. Raises EngineFailedError.
    """
    machine = Machine(values.power.sysfs).facts().board.value
    if values.models.backend == BACKEND:
        return pair.int8 if _builds_int8(values) else pair.float32, PrecisionChoice(machine=machine)
    float_ms, int8_ms = _times_ms(pair, values)
    is_there = former is not None and former.machine == machine
    rung = pair.int8 if is_int8_chosen(float_ms, int8_ms, is_there=is_there) else pair.float32
    return rung, PrecisionChoice(float_ms=float_ms, int8_ms=int8_ms, machine=machine)


def is_int8_chosen(float_ms: float, int8_ms: float, *, is_there: bool) -> bool:
    """Whether 8 bits are chosen by these times.

    is_there: whether they were chosen on this machine before. Then they stay until the float model is clearly faster: a
    time near the limit would exchange the models each time otherwise.
    """
    return float_ms > CLEARLY_FASTER * int8_ms if is_there else int8_ms <= CLEARLY_FASTER * float_ms


def _builds_int8(values: Config) -> bool:
    """Whether TensorRT here is to build int8 engines, and the GPU is fast in them; raises EngineFailedError."""
    settings = host_settings(values.host)
    return settings.precision == "int8" and bool(Builder(settings).about["gpu"].get("fast_int8"))


def _times_ms(pair: RungPair, values: Config) -> tuple[float, float]:
    """Return the median time of one image with each, by turns, on the configured backend; raises EngineFailedError."""
    backends, engines = Backends(host_settings(values.host)), []
    runs: dict[str, Callable[[], object]] = {}
    try:
        for rung in pair:
            weights, image = weights_of(rung), drawn(rung.side_px)[:1]
            engine = backends.open(values.models.backend, weights, concurrency=1, threads=values.models.threads)
            engines.append(engine)
            warm_up(engine, weights, (1,) * WARM_UPS)
            runs[rung.wanted.name] = partial(engine.infer, image)
        float_ms, int8_ms = map(median, run_by_turns(runs, MOST_ROUNDS, BUDGET_S, LEAST_ROUNDS).values())
    finally:
        for engine in engines:
            engine.close()
        backends.close()
    return float_ms, int8_ms


def weights_of(rung: Rung) -> Weights:
    """Return what a backend loads before the rung is added."""
    return Weights(rung.wanted.name, rung.onnx, rung.sha256, rung.side_px, rung.side_px, rung.expected.shape[1])
