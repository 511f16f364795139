"""A model small enough to check by hand, in a hosted backend, and what its host is."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.base.weights import Weights
from jetsel.engines.hosted import HostedBackend, HostedEngine
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model

CLASSES = 4
MATRIX = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)

Make = Callable[..., HostedBackend]


def tiny(folder: Path, name: str = "tiny", matrix: NDArray[np.float32] = MATRIX) -> Weights:
    path = folder / f"{name}.onnx"
    path.write_bytes(matrix_model(matrix))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Weights(name, path, digest, HEIGHT_PX, WIDTH_PX, matrix.shape[1])


def load(backend: HostedBackend, weights: Weights) -> HostedEngine:
    return backend.open(weights, concurrency=1, threads=1)


def images(count: int = 1, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)


def is_right(engine: HostedEngine, seed: int = 0) -> bool:
    batch = images(seed=seed)
    return np.allclose(engine.infer(batch).logits, batch.reshape(1, PIXELS) @ MATRIX, atol=1e-5)


def pid_of(backend: HostedBackend) -> int:
    process = backend.supervisor.process
    return process.pid


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()
