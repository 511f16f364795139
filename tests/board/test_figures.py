"""The device tells its own time and what engines cost; runs leave nothing behind; figures go into the report."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jetsel.base.host_settings import HostSettings
from jetsel.engines import Engine
from jetsel.engines.onnx import OnnxEngine
from tests.board.conftest import MODELS, Built, Report, megabytes, percentiles
from tests.contract.opening import Models, Subject, photographs

RUNS, FIRST = 200, 20  # the first runs are not the usual ones


@pytest.fixture(scope="module")
def served(settings: HostSettings, precision: str) -> Iterator[Models]:
    """A host that runs: starting it is not part of loading a model."""
    models = Models(Subject("tensorrt", replace(settings, precision=precision)))
    models.backends.get("tensorrt").supervisor.start()  # type: ignore[attr-defined]
    yield models
    models.close()


def run(engine: Engine) -> tuple[list[float], list[float | None]]:
    """Return the wall's ms and the device's own of each run of one photograph."""
    photograph = photographs(1)
    wall_ms, device_ms = [], []
    for _ in range(FIRST + RUNS):
        began = time.perf_counter()
        output = engine.infer(photograph)
        wall_ms.append((time.perf_counter() - began) * 1e3)
        device_ms.append(output.device_ms)
    return wall_ms[FIRST:], device_ms[FIRST:]


@pytest.mark.parametrize("name", MODELS)
def test_the_device_s_own_time_is_part_of_the_wall_s(
    served: Models, built: Built, about: Mapping[str, Any], report: Report, precision: str, name: str
) -> None:
    record = built(precision, name)["record"]
    began = time.perf_counter()
    engine = served.backends.open("tensorrt", MODELS[name], concurrency=1, threads=1)
    load_s = time.perf_counter() - began
    wall_ms, device_ms = run(engine)
    assert all(device is not None and 0 < device <= wall for device, wall in zip(device_ms, wall_ms, strict=True))
    in_process = OnnxEngine(name, MODELS[name].path, concurrency=1, threads=os.cpu_count() or 1)
    report.rows.append(
        {
            "model": name,
            "precision": precision,
            "onnxruntime_ms": percentiles(run(in_process)[0]),
            "device_ms": percentiles([device for device in device_ms if device is not None]),
            "wall_ms": percentiles(wall_ms),
            "build_s": f"{record['build_s']:.1f}",
            "load_s": f"{load_s:.2f}",
            "plan_mb": megabytes(record["plan_bytes"]),
            "memory_mb": megabytes(engine.cost_bytes),  # type: ignore[attr-defined]
            "scratch_mb": megabytes(record["scratch_bytes"]),
        }
    )


def test_what_an_engine_costs_is_measured(built: Built, about: Mapping[str, Any], models: Models) -> None:
    recorded = built("fp16", "xl")["record"]["cost_bytes"]
    cost = models.open(MODELS["xl"]).cost_bytes  # type: ignore[attr-defined]
    for figure in (recorded, cost):
        # Where the GPU's memory is everybody's, others can hide it: then it is not known.
        assert figure > 0 if figure is not None else about["gpu"]["is_integrated"]


def test_ten_thousand_runs_leave_the_memory_where_it_was(models: Models) -> None:
    engine, photograph = models.open(MODELS["xs"]), photographs(1)
    process = models.backends.get("tensorrt").supervisor.process  # type: ignore[attr-defined]

    def after(runs: int) -> list[int]:
        """The resident pages of both processes, which on a board are the GPU's memory too."""
        for _ in range(runs):
            engine.infer(photograph)
        return [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (os.getpid(), process.pid)]

    for first, last in zip(after(1_000), after(9_000), strict=True):
        assert last <= 1.02 * first
