"""One run of a model on a batch of photographs, and what policies are told of it: probabilities and a confidence."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jetsel.engines import EngineFailedError
from jetsel.policies.policy import Prediction
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun
from jetsel.wire import Ran


def infer(queue: ModelQueue, runs: list[RequestRun], now: Callable[[], float]) -> list[tuple[Prediction, Ran]]:
    """Run the model on the photographs of these runs, as one batch. Raises as Engine.infer does."""
    assert queue.engine is not None
    begun_s = now()
    inputs = [run.request.model_input(queue.model) for run in runs]
    began_s = now()
    logits, embeddings, device_ms = queue.engine.infer(*inputs)
    took_ms = (now() - began_s) * 1e3
    if not math.isfinite(np.add.reduce(logits, axis=None)):  # one number that is not makes the sum so
        raise EngineFailedError("it returned numbers that are not finite")
    results = []
    for number, run in enumerate(runs):
        embedding = None if embeddings is None else embeddings[number]
        prediction = predict(queue.model, logits[number], queue.temperature, embedding)
        asked, because = run.asked, ""  # None: it is not waited for any more
        if asked is not None:
            because = asked.because
            run.stages.waiting = (run.stages.waiting or 0.0) + (begun_s - run.asked_s) * 1e3
        results.append((prediction, Ran(queue.model, because, prediction.confidence, took_ms, len(runs), device_ms)))
    return results


def predict(
    model: str,
    logits: NDArray[np.float32],
    temperature: float,
    embedding: NDArray[np.float32] | None = None,
) -> Prediction:
    """Turn logits (classes,) into probabilities at the model's temperature, and read its confidence."""
    scaled = logits / temperature
    scaled -= np.maximum.reduce(scaled)
    probabilities = np.exp(scaled, scaled)
    total = np.add.reduce(probabilities)
    probabilities /= total
    return Prediction(model, probabilities, float(1 / total), embedding)  # the largest scaled logit is 0
