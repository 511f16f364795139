"""What each model costs in time, on some random photographs, as a daemon with loaded models would pay."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from jetsel import image
from jetsel.calibrate.record.noise import Watch
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.repeats import Plan, half_width, repeat_by_turns
from jetsel.calibrate.record.store import Store
from jetsel.engines import Engine, Output
from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.features import extract
from jetsel.zoo import Family

_WARM_UPS = 3  # the first runs allocate
_UNSETTLED_SHARE = 0.1


@dataclass(frozen=True)
class Bench:
    """What is timed or metered, and how.

    doubt: what speaks against all of it from the beginning. idle_half_w: half of the 95 % interval of the idle power
    that the meter deducts.
    """

    family: Family
    engines: Mapping[str, Engine]
    plan: Plan
    limits: image.Limits
    doubt: str | None = None
    idle_half_w: float = 0.0

    def read(self, path: str) -> image.Photograph | None:
        """Return a photograph, None where it is gone or was damaged meanwhile."""
        try:
            return image.decode(image.read_file(Path(path), self.limits), self.limits, self.family.decode_px)
        except (OSError, BadImageError, ImageTooLargeError):
            return None

    def run(self, name: str, photograph: image.Photograph) -> Output:
        """Let one model answer, its input made anew: that is part of what a request pays."""
        spec = next(model.manifest.input for model in self.family.models if model.manifest.name == name)
        return self.engines[name].infer(image.model_input(photograph, spec))

    def warm_up(self, photograph: image.Photograph) -> bool:
        """Run every model a few times; return whether one of them runs on a device with a clock of its own."""
        outputs = [self.run(name, photograph) for name in self.engines for _ in range(_WARM_UPS)]
        return any(output.device_ms is not None for output in outputs)


def time_models(store: Store, bench: Bench, conditions: int, watch: Watch, tell: Tell | None, stop: Stop) -> bool:
    """Time every model on the plan's photographs, those left out that were timed before; True unless stopped."""
    chosen = [
        (photograph, path, missing)
        for photograph, path in some_photographs(store, bench.plan.photographs, bench.plan.seed)
        if (missing := store.missing("timings", photograph))
    ]
    if not chosen:
        return True
    reporter = Reporter("timing", len(chosen), tell)
    on_gpu: bool | None = None  # unknown until all models are warm
    for done, (photograph, path, missing) in enumerate(chosen, 1):
        shown = bench.read(path)
        if shown is not None:  # a file that is gone by now is timed by a later run
            on_gpu = bench.warm_up(shown) if on_gpu is None else on_gpu
            _time(store, bench, photograph, shown, missing, conditions)
            watch.look(gpu=on_gpu)
            mark(store, conditions, watch, bench)
        store.tick()
        reporter.reach(done)
        if stop.is_set():
            return False
    return True


def some_photographs(store: Store, count: int, seed: int) -> list[tuple[int, str]]:
    """Return id and path of so many random photographs, of those that this run was given and every model has seen.

    They are drawn by a hash of seed and content: so the same call chooses the same, a smaller count the first of them,
    and most of them again when photographs are added.
    """
    rows = store.connection.execute(
        "SELECT id, path, sha256 FROM photographs JOIN chosen USING (sha256)"
        " WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = id"
        " AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    ).fetchall()
    rows.sort(key=lambda row: hashlib.sha256(f"{seed} {row[2]}".encode()).digest())
    return [(photograph, path) for photograph, path, _ in rows[:count]]


def _time(
    store: Store, bench: Bench, photograph: int, shown: image.Photograph, models: tuple[str, ...], conditions: int
) -> None:
    """Time models, and the features by the same rule, in place of the one look at them while recording."""
    features = repeat_by_turns({"features": partial(extract, shown.bgr)}, bench.plan)["features"]
    store.connection.execute("UPDATE photographs SET features_ms = ? WHERE id = ?", (fmean(features), photograph))
    runs = {name: partial(bench.run, name, shown) for name in models}
    for name, durations_ms in repeat_by_turns(runs, bench.plan).items():
        store.connection.execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ?, ? FROM wanted WHERE name = ?",
            (photograph, conditions, fmean(durations_ms), half_width(durations_ms), len(durations_ms), name),
        )


def mark(store: Store, conditions: int, watch: Watch, bench: Bench) -> None:
    """Note why the times and energies of this run cannot be trusted, as far as is known by now."""
    plan, reasons = bench.plan, [reason for reason in (watch.reason(), bench.doubt) if reason]
    for called, query in (
        ("times", "SELECT COUNT(*), TOTAL(half_width_ms >= ? * mean_ms) FROM timings WHERE conditions = ?"),
        ("energies", "SELECT COUNT(*), TOTAL(scatter_mj >= ? * mean_mj) FROM energies WHERE conditions = ?"),
    ):
        count, restless = store.connection.execute(query, (plan.half_width, conditions)).fetchone()
        if restless > _UNSETTLED_SHARE * count:
            settled = f"did not settle within {100 * plan.half_width:g} %"
            reasons.append(f"{100 * restless / count:.0f} % of the {called} {settled}")
    store.connection.execute("UPDATE conditions SET noisy = ? WHERE id = ?", ("; ".join(reasons) or None, conditions))
