"""Times models and features within a budget: a noisy machine is reported, not measured for longer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

from jetsel.calibrate.record.bench import Bench, ShownImage
from jetsel.calibrate.record.durations import run_by_turns
from jetsel.calibrate.record.workers import progress


def time_models(bench: Bench, budget_s: float) -> bool:
    """Time every model on the plan's images, those left out that were timed before; True unless stopped.

    Models are timed until the budget is spent, but on at least the plan's `least` images.
    """
    plan, stop_s = bench.options.plan, time.monotonic() + budget_s
    images = bench.photographs(plan.images)
    chosen = [(number, path, missing) for number, path in images if (missing := bench.store.missing("timings", number))]
    timed = len(images) - len(chosen)
    if not chosen or (timed >= plan.least and budget_s <= 0):
        return True
    reach = progress("timing", len(chosen), bench.tell)
    for done, (number, shown, missing, on_gpu) in enumerate(bench.shown(chosen), 1):
        _time(bench, number, shown, missing)
        bench.look(on_gpu)
        reach(done)
        if bench.stop.is_set():
            return False
        if timed + done >= plan.least and time.monotonic() >= stop_s:
            break
    return True


def _time(bench: Bench, number: int, shown: ShownImage, models: tuple[str, ...]) -> None:
    """Time models, and the features with them, in place of the one look at these while recording."""
    execute = bench.store.connection.execute
    runs: dict[str, Callable[[], object]] = {name: partial(bench.run, name, shown.photograph) for name in models}
    taken = run_by_turns({"": shown.extract, **runs}, bench.options.plan.repeats)
    features_ms = statistics.median(taken.pop(""))
    execute("UPDATE photographs SET features_ms = ? WHERE id = ?", (features_ms, number))
    for name, durations_ms in taken.items():
        execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ? FROM wanted WHERE name = ?",
            (number, bench.conditions, statistics.median(durations_ms), len(durations_ms), name),
        )
