"""What each model costs in time, on some random photographs, as a daemon with loaded models would pay."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from jetsel.calibrate.record.bench import Bench, Shown
from jetsel.calibrate.record.repeats import half_width, repeat_by_turns
from jetsel.calibrate.record.workers import progress


def time_models(bench: Bench) -> bool:
    """Time every model on the plan's photographs, those left out that were timed before; True unless stopped."""
    chosen = [
        (photograph, path, missing)
        for photograph, path in bench.photographs(bench.options.plan.photographs)
        if (missing := bench.store.missing("timings", photograph))
    ]
    if not chosen:
        return True
    reach = progress("timing", len(chosen), bench.tell)
    for done, (photograph, shown, missing, on_gpu) in enumerate(bench.shown(chosen), 1):
        _time(bench, photograph, shown, missing)
        bench.look(on_gpu)
        reach(done)
        if bench.stop.is_set():
            return False
    return True


def _time(bench: Bench, photograph: int, shown: Shown, models: tuple[str, ...]) -> None:
    """Time models, and the features by the same rule, in place of the one look at them while recording."""
    execute, plan = bench.store.connection.execute, bench.options.plan
    features_ms = repeat_by_turns({"features": shown.extract}, plan)["features"]
    execute("UPDATE photographs SET features_ms = ? WHERE id = ?", (fmean(features_ms), photograph))
    runs = {name: partial(bench.run, name, shown.photograph) for name in models}
    for name, durations_ms in repeat_by_turns(runs, plan).items():
        execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ?, ? FROM wanted WHERE name = ?",
            (photograph, bench.conditions, fmean(durations_ms), half_width(durations_ms), len(durations_ms), name),
        )
