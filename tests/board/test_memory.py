"""What engines cost is measured, a reserve is kept, and runs leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.board.building import MODELS
from tests.board.conftest import Built
from tests.contract.opening import Models, photographs

RUNS = 4_500  # twice, after 1,000


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

    for first, last in zip(after(1_000), after(2 * RUNS), strict=True):
        assert last <= 1.02 * first
