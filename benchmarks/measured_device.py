"""What the simulation has to know of the machine that it stands for: how long each part of a request takes there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.arrivals import poisson
from benchmarks.load import Generator, Job
from benchmarks.open_loop import OpenJob, OpenWindow
from benchmarks.servers import Server
from benchmarks.simulated import Device, Times, recorded_logits
from jetsel.client import Client
from jetsel.site.configured import ConfiguredFamily

SEED = 2026
CLIENTS, CLOSED_REQUESTS, ROUNDS = 16, 400, 3
WORKERS = 2  # of the daemon by default on two cores
OVER, OVER_S = 1.5, 4.0  # of what the cheapest model serves, for how long: so that a third is refused


def measured_device(
    family: ConfiguredFamily, files: list[bytes], target_ms: float, served: Server, asking: Generator, opened: Generator
) -> Device:
    """Return what the simulation has to know, with each model pinned; the median of rounds by turns.

    files: the images. asking, opened: in a closed and in an open loop.
    """
    front = family.front
    assert front is not None
    runs_ms: dict[str, list[float]] = {name: [] for name in front.models}
    besides_ms, messages_ms = [], []
    for _ in range(ROUNDS):
        rate_hz = 0.0
        for name, known_ms in runs_ms.items():
            rate_hz, run_ms = _busy(served, name, files[0], asking)
            known_ms.append(run_ms)
            besides_ms.append(1e3 * WORKERS / rate_hz - run_ms)
        messages_ms.append(_message_ms(served, len(files), front.models[-1], rate_hz, target_ms, opened))
    models_ms = {name: float(np.median(known_ms)) for name, known_ms in runs_ms.items()}
    message_ms = float(np.median(messages_ms))
    times = Times(message_ms, max(0.0, float(np.median(besides_ms)) - message_ms), models_ms)
    print(f"\nOf the simulation: {times}")
    calibration = family.in_use.calibration
    assert calibration is not None
    logits = recorded_logits(family, front.models, files)
    return Device(logits, calibration.temperatures, times, WORKERS)


def _busy(served: Server, model: str, image: bytes, asking: Generator) -> tuple[float, float]:
    """Return the requests/s of CLIENTS clients in a closed loop, and the median time of a run for one image in ms."""
    job = Job(served.address, model, CLIENTS - 1, CLOSED_REQUESTS, 50, served.pids)
    runs = []
    with ThreadPoolExecutor(1) as others, Client(served.address) as client:
        window = others.submit(asking.measure, job)
        while not window.done():
            runs += client.classify(image, model=model).ran
    rate_hz = window.result().requests_per_s * CLIENTS / (CLIENTS - 1)
    return rate_hz, float(np.median([run.latency_ms / run.batch for run in runs]))


def _message_ms(
    served: Server, n_images: int, model: str, rate_hz: float, target_ms: float, asking: Generator
) -> float:
    """Return what a refused request takes of the machine when it is busy, the generator's part included.

    rate_hz: what this model serves in a closed loop. What it serves less in overload went into those refused.
    """
    due_s = poisson(OVER * rate_hz, OVER_S, np.random.default_rng(SEED)).tolist()
    images = [number % n_images for number in range(len(due_s))]
    job = OpenJob(served.address, served.pids, due_s, images, f"single:{model}", target_ms)
    outcomes = asking.result(job, OpenWindow).outcomes
    answered = sum(one.code == "ok" for one in outcomes)
    left_ms = 1e3 * WORKERS * (OVER_S - answered / rate_hz)
    return max(0.0, left_ms / (len(outcomes) - answered))
