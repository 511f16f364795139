"""Run a model that is about to be added: what it answers, what it costs, and how long it takes here."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from jetsel.engines import Backends, Engine, EngineFailedError, warm_up
from jetsel.engines.shapes import shapes_in
from jetsel.errors import ManifestError
from jetsel.weights import Weights
from jetsel.zoo.classifier import EMBEDDING, LOGITS, Classifier
from jetsel.zoo.cost import multiply_accumulates, tensors_to_shape, uncountable
from jetsel.zoo.onnx_graph import with_outputs

BACKEND = "onnxruntime"  # wherever the model will be served, this one runs it
RUNS, AT_MOST_S = 20, 2.0


@dataclass(frozen=True)
class Trial:
    """What a model was seen to do. latency_ms: the median of a photograph's runs, one at a time."""

    embedding_width: int | None
    multiply_accumulates: int
    latency_ms: float


def tried(weights: Weights, found: Classifier, counted: int | None, threads: int) -> Trial:
    """Run the model on patterns; raises EngineFailedError or ManifestError where it cannot be served.

    counted: its multiply-accumulates where the owner says them.
    """
    shapes = _shapes(weights, found, counted is None)
    width = _embedding_width(weights.name, shapes.get(EMBEDDING))
    cost = counted or multiply_accumulates(found.graph, shapes)
    if cost == 0:
        raise _say_the_cost(weights.name, "nothing that is known to multiply")
    return Trial(width, cost, latency_ms(weights, threads, found.before_softmax))


def latency_ms(weights: Weights, threads: int, before_softmax: str | None = None) -> float:
    """Return what a run of one photograph takes; raises EngineFailedError where it answers what it should not.

    before_softmax: the tensor that may be served instead where the answers are probabilities.
    """
    backends = Backends()
    try:
        engine = backends.open(BACKEND, weights, concurrency=1, threads=threads)
        try:
            warm_up(engine, weights)
            _refuse_no_logits(engine, weights, before_softmax)
            return _median_ms(engine, weights)
        finally:
            engine.close()
    finally:
        backends.close()


def _shapes(weights: Weights, found: Classifier, count: bool) -> dict[str, tuple[int, ...]]:
    if count and (why := uncountable(found.graph)) is not None:
        raise _say_the_cost(weights.name, why)
    outputs = [LOGITS, *([EMBEDDING] if found.has_embedding else [])]
    wanted = [*dict.fromkeys([*outputs, *(tensors_to_shape(found.graph) if count else [])])]
    there = {value.name for value in found.graph.outputs} | {LOGITS}
    content = weights.path.read_bytes() + with_outputs(name for name in wanted if name not in there)
    return shapes_in(content, wanted, (1, 3, weights.height_px, weights.width_px))


def _say_the_cost(name: str, what: str) -> ManifestError:
    return ManifestError(
        f"{name}: its multiply-accumulates cannot be counted: it holds {what}; say them for one photograph, as in "
        "--multiply-accumulates 300e6"
    )


def _embedding_width(name: str, shape: tuple[int, ...] | None) -> int | None:
    if shape is None:
        return None
    if len(shape) != 2:
        raise ManifestError(
            f"{name}: its output embedding has {len(shape)} sides where (n, width) is due: export it flat, or rename it"
        )
    return shape[1]


def _refuse_no_logits(engine: Engine, weights: Weights, before_softmax: str | None) -> None:
    pattern = np.random.default_rng(0).standard_normal((1, 3, weights.height_px, weights.width_px), dtype=np.float32)
    logits = engine.infer(pattern).logits
    if not np.isfinite(logits).all():
        raise EngineFailedError(f"{engine.name} answers numbers that are not finite on noise: export it again")
    if weights.classes > 1 and logits.min() >= 0 and abs(float(logits.sum()) - 1) < 1e-3:
        repair = "export it without its softmax"
        if before_softmax is not None:
            repair += f", or add it with --output {before_softmax}"
        raise ManifestError(f"{engine.name} answers probabilities where logits are due: {repair}")


def _median_ms(engine: Engine, weights: Weights) -> float:
    photograph = np.zeros((1, 3, weights.height_px, weights.width_px), np.float32)
    taken: list[float] = []
    give_up = time.perf_counter() + AT_MOST_S
    while len(taken) < RUNS and (not taken or time.perf_counter() < give_up):
        start = time.perf_counter()
        engine.infer(photograph)
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken)
