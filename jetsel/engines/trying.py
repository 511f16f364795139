"""Trial of a model that is added or inspected: whether it behaves as a classifier, and how fast it is.

The trial uses ONNX Runtime in this process, for every backend.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from jetsel.base.weights import TrialRun, Weights
from jetsel.engines.backends import with_head
from jetsel.engines.base import Engine, EngineFailedError, warm_up
from jetsel.engines.onnx import OnnxEngine

RUNS, AT_MOST_S = 20, 2.0  # limits of the timed runs
SAME_SUM = 0.01  # relative tolerance: probabilities in 8 bits are rounded


def try_run(weights: Weights, threads: int) -> TrialRun:
    """Check a model's outputs and measure its latency; raises EngineFailedError, with the repair, if it is unusable."""
    try:
        backbone = OnnxEngine(weights.name, weights.path, concurrency=1, threads=threads)
        engine = with_head(backbone, weights)
        warm_up(engine, weights)
        return TrialRun(_embedding_width(engine, weights), _median_ms(engine, weights))
    except MemoryError:
        message = f"{weights.name}: needs more memory than this machine has free: export a smaller model, or free some"
        raise EngineFailedError(message) from None


def largest_difference(weights: Weights, threads: int, batch: np.ndarray, logits: np.ndarray) -> float:
    """Run the batch, and return the largest difference of a logit from `logits`, as a share of the largest of those.

    batch: (n, 3, height, width) float32; logits: (n, classes) float32, of another run. Raises EngineFailedError.
    """
    our_logits = OnnxEngine(weights.name, weights.path, concurrency=1, threads=threads).infer(batch).logits
    return float(np.abs(our_logits - logits).max() / np.abs(logits).max())


def _embedding_width(engine: Engine, weights: Weights) -> int | None:
    """Return the embedding's width, None if there is none; raises EngineFailedError if the logits are probabilities."""
    noise = np.random.default_rng(0).standard_normal((4, 3, weights.height_px, weights.width_px), dtype=np.float32)
    output = engine.infer(noise[:1])
    if not np.isfinite(output.logits).all():
        raise EngineFailedError(f"{engine.name} returns numbers that are not finite on noise: export it again")
    # Stronger noise enlarges logits without limit, but not probabilities.
    stronger = [engine.infer(strength * noise[[number]]).logits for number, strength in ((1, 4), (2, 16), (3, 64))]
    rows = np.concatenate([output.logits, *stronger])
    sums, largest = rows.sum(axis=1), rows.max()
    if np.isfinite(rows).all() and rows.min() >= 0 and (0 < largest < 1.001 or np.ptp(sums) < SAME_SUM * sums.max()):
        raise EngineFailedError(
            f"{engine.name} returns shares or numbers from 0 to 1 for all of {len(rows)} images: probabilities instead "
            "of logits; export it without its softmax or sigmoid"
        )
    if output.embedding is None:
        return None
    if output.embedding.ndim != 2:
        raise EngineFailedError(
            f"{engine.name}: its output embedding has {output.embedding.ndim} dimensions instead of (n, width): "
            "export it flat, or rename it"
        )
    return int(output.embedding.shape[1])


def _median_ms(engine: Engine, weights: Weights) -> float:
    """Return the median latency of single images, over up to RUNS runs within AT_MOST_S."""
    photograph = np.zeros((1, 3, weights.height_px, weights.width_px), np.float32)
    times_ms: list[float] = []
    end_s = time.perf_counter() + AT_MOST_S
    while len(times_ms) < RUNS and (not times_ms or time.perf_counter() < end_s):
        start = time.perf_counter()
        engine.infer(photograph)
        times_ms.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times_ms)
