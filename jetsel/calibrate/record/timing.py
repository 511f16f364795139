"""What each model costs in time, on some random photographs, as a daemon with loaded models would pay."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jetsel import image
from jetsel.calibrate.record.noise import Watch
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.repeats import Plan, repeat_by_turns
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


def time_models(store: Store, bench: Bench, conditions: int, watch: Watch, tell: Tell | None, stop: Stop) -> bool:
    """Time every model on the plan's photographs, those left out that were timed before; True unless stopped.

    The model input is made anew each time: it is part of what a request pays. Loading is not, nor the first runs.
    """
    chosen, timed = _choose(store, bench.plan)
    if timed >= len(chosen):
        return True
    reporter = Reporter("timing", len(chosen), tell, done=timed)
    on_gpu: bool | None = None  # unknown until all models are warm
    for photograph, path, missing in chosen:
        if not missing:
            continue
        data = whole_file(Path(path), bench)
        if data is not None:  # a file that is gone by now is timed by a later run
            decoded = image.decode(data, bench.limits, bench.family.decode_px)
            on_gpu = warm_up(bench, decoded) if on_gpu is None else on_gpu
            _write_shared(store, bench, photograph, data, decoded)
            _write(store, bench, photograph, conditions, {name: partial(run, bench, name, decoded) for name in missing})
            watch.look(gpu=on_gpu)
            mark(store, conditions, watch, bench)
            timed += 1
        store.tick()
        reporter.reach(timed)
        if stop.is_set():
            return False
    return True


def _choose(store: Store, plan: Plan) -> tuple[list[tuple[int, str, tuple[str, ...]]], int]:
    """Return (id, path, models not timed yet) of the photographs to time, and how many of them are timed."""
    chosen = []
    for photograph, path in some_photographs(store, plan.photographs, plan.seed):
        missing = store.connection.execute(
            "SELECT name FROM wanted WHERE id NOT IN (SELECT model FROM timings WHERE photograph = ?) ORDER BY name",
            (photograph,),
        )
        chosen.append((photograph, path, tuple(name for (name,) in missing)))
    return chosen, sum(not missing for _, _, missing in chosen)


def some_photographs(store: Store, count: int, seed: int) -> list[tuple[int, str]]:
    """Return id and path of so many random photographs, of those that this run was given and every model has seen.

    They are drawn by a hash of seed and content: so the same call chooses the same, a smaller count the first of them,
    and most of them again when photographs are added.
    """
    rows = store.connection.execute(
        "SELECT id, p.path, sha256 FROM photographs p JOIN chosen USING (sha256)"
        " WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = id"
        " AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    ).fetchall()
    rows.sort(key=lambda row: hashlib.sha256(f"{seed} {row[2]}".encode()).digest())
    return [(photograph, path) for photograph, path, _ in rows[:count]]


def whole_file(path: Path, bench: Bench) -> bytes | None:
    """Return the bytes of a file that can be decoded, None where it is gone or was damaged meanwhile."""
    try:
        data = image.read_file(path, bench.limits)
        image.decode(data, bench.limits, bench.family.decode_px)
    except (OSError, BadImageError, ImageTooLargeError):
        return None
    return data


def run(bench: Bench, name: str, photograph: image.Photograph) -> Output:
    """Let one model answer, its input made anew."""
    spec = next(model.manifest.input for model in bench.family.models if model.manifest.name == name)
    return bench.engines[name].infer(image.model_input(photograph, spec))


def warm_up(bench: Bench, photograph: image.Photograph) -> bool:
    """Run every model a few times; return whether one of them runs on a device with a clock of its own."""
    outputs = [run(bench, name, photograph) for name in bench.engines for _ in range(_WARM_UPS)]
    return any(output.device_ms is not None for output in outputs)


def _write_shared(store: Store, bench: Bench, photograph: int, data: bytes, decoded: image.Photograph) -> None:
    """Time what does not depend on the model by the same rule, in place of the one look at it while recording."""
    decode = partial(image.decode, data, bench.limits, bench.family.decode_px)
    found = repeat_by_turns({"decode": decode, "features": partial(extract, decoded.bgr)}, bench.plan)
    store.connection.execute(
        "UPDATE photographs SET decode_ms = ?, features_ms = ? WHERE id = ?",
        (found["decode"].mean, found["features"].mean, photograph),
    )


def _write(
    store: Store, bench: Bench, photograph: int, conditions: int, runs: Mapping[str, Callable[[], Output]]
) -> None:
    for name, repeats in repeat_by_turns(runs, bench.plan).items():
        store.connection.execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ?, ? FROM wanted WHERE name = ?",
            (photograph, conditions, repeats.mean, repeats.half_width, repeats.count, name),
        )


def mark(store: Store, conditions: int, watch: Watch, bench: Bench) -> None:
    """Note why the times and energies of this run cannot be trusted, as far as is known by now."""
    called = {"timings": "times", "energies": "energies"}
    plan, reasons = bench.plan, [reason for reason in (watch.reason(), bench.doubt) if reason]
    for what, half, mean in (("timings", "half_width_ms", "mean_ms"), ("energies", "scatter_mj", "mean_mj")):
        count, restless = store.connection.execute(
            f"SELECT COUNT(*), TOTAL({half} >= ? * {mean}) FROM {what} WHERE conditions = ?",
            (plan.half_width, conditions),
        ).fetchone()
        if restless > _UNSETTLED_SHARE * count:
            settled = f"did not settle within {100 * plan.half_width:g} %"
            reasons.append(f"{100 * restless / count:.0f} % of the {called[what]} {settled}")
    store.connection.execute("UPDATE conditions SET noisy = ? WHERE id = ?", ("; ".join(reasons) or None, conditions))
