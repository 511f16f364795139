"""What each model costs: time and energy on some random photographs, as a daemon with loaded models would pay."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jetsel import image
from jetsel.calibrate.record.examine import read_file
from jetsel.calibrate.record.noise import Watch
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.repeats import Plan, Repeats, repeat_by_turns
from jetsel.calibrate.record.store import Store
from jetsel.engines import Engine, Output
from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.features import extract
from jetsel.power import NO_METER, Reading
from jetsel.power.meter import Meter
from jetsel.zoo import Family

_WARM_UPS = 3  # the first runs allocate
_UNSETTLED_SHARE = 0.1


@dataclass(frozen=True)
class Bench:
    """What is timed, and how. meter: None where energy is not measured."""

    family: Family
    engines: Mapping[str, Engine]
    plan: Plan
    limits: image.Limits
    meter: Meter | None


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
        data = _whole_file(Path(path), bench)
        if data is not None:  # a file that is gone by now is timed by a later run
            decoded = image.decode(data, bench.limits, bench.family.decode_px)
            on_gpu = _warm_up(bench, decoded) if on_gpu is None else on_gpu
            _write_shared(store, bench, photograph, data, decoded)
            _write(
                store, bench, photograph, conditions, {name: partial(_run, bench, name, decoded) for name in missing}
            )
            watch.look(gpu=on_gpu)
            _mark(store, conditions, watch, bench.plan)
            timed += 1
        store.tick()
        reporter.reach(timed)
        if stop.is_set():
            return False
    return True


def _choose(store: Store, plan: Plan) -> tuple[list[tuple[int, str, tuple[str, ...]]], int]:
    """Return (id, path, models not timed yet) of the photographs to time, and how many of them are timed.

    Random ones of those that this run was given, by a hash of seed and content: so the same call chooses the same, and
    most of them again when photographs are added.
    """
    rows = store.connection.execute(
        "SELECT id, p.path, sha256 FROM photographs p JOIN chosen USING (sha256)"
        " WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = id"
        " AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    ).fetchall()
    rows.sort(key=lambda row: hashlib.sha256(f"{plan.seed} {row[2]}".encode()).digest())
    chosen = []
    for photograph, path, _ in rows[: plan.photographs]:
        missing = store.connection.execute(
            "SELECT name FROM wanted WHERE id NOT IN (SELECT model FROM timings WHERE photograph = ?) ORDER BY name",
            (photograph,),
        )
        chosen.append((photograph, path, tuple(name for (name,) in missing)))
    return chosen, sum(not missing for _, _, missing in chosen)


def _whole_file(path: Path, bench: Bench) -> bytes | None:
    """Return the bytes of a file that can be decoded, None where it is gone or was damaged meanwhile."""
    try:
        data = read_file(path, bench.limits)
        image.decode(data, bench.limits, bench.family.decode_px)
    except (OSError, BadImageError, ImageTooLargeError):
        return None
    return data


def _run(bench: Bench, name: str, photograph: image.Photograph) -> Output:
    spec = next(model.manifest.input for model in bench.family.models if model.manifest.name == name)
    return bench.engines[name].infer(image.model_input(photograph, spec))


def _warm_up(bench: Bench, photograph: image.Photograph) -> bool:
    """Run every model a few times; return whether one of them runs on a device with a clock of its own."""
    outputs = [_run(bench, name, photograph) for name in bench.engines for _ in range(_WARM_UPS)]
    return any(output.device_ms is not None for output in outputs)


def _write_shared(store: Store, bench: Bench, photograph: int, data: bytes, decoded: image.Photograph) -> None:
    """Time what does not depend on the model by the same rule, in place of the one look at it while recording."""
    decode = partial(image.decode, data, bench.limits, bench.family.decode_px)
    found = repeat_by_turns({"decode": decode, "features": partial(extract, decoded.bgr)}, bench.plan)
    store.connection.execute(
        "UPDATE photographs SET decode_ms = ?, features_ms = ? WHERE id = ?",
        (found["decode"].mean_ms, found["features"].mean_ms, photograph),
    )


def _write(
    store: Store, bench: Bench, photograph: int, conditions: int, runs: Mapping[str, Callable[[], Output]]
) -> None:
    for name, repeats in repeat_by_turns(runs, bench.plan).items():
        energy = _energy(bench.meter, runs[name], repeats)
        store.connection.execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ?, ?, ?, ? FROM wanted WHERE name = ?",
            (
                photograph,
                conditions,
                repeats.mean_ms,
                repeats.half_width_ms,
                repeats.count,
                energy.energy_mj,
                energy.reason,
                name,
            ),
        )


def _energy(meter: Meter | None, run: Callable[[], object], repeats: Repeats) -> Reading:
    """Return the energy of one run: of as many in a row as were timed, since one is too short for any sensor."""
    if meter is None:
        return NO_METER
    window = meter.window()
    for _ in range(repeats.count):
        run()
    reading = window.close()
    return reading if reading.energy_mj is None else Reading(reading.energy_mj / repeats.count, None)


def _mark(store: Store, conditions: int, watch: Watch, plan: Plan) -> None:
    """Note why the times of this run cannot be trusted, as far as is known by now."""
    count, restless = store.connection.execute(
        "SELECT COUNT(*), TOTAL(half_width_ms >= ? * mean_ms) FROM timings WHERE conditions = ?",
        (plan.half_width, conditions),
    ).fetchone()
    reasons = [reason for reason in (watch.reason(),) if reason]
    if restless > _UNSETTLED_SHARE * count:
        reasons.append(f"{100 * restless / count:.0f} % of the times did not settle within {100 * plan.half_width:g} %")
    store.connection.execute("UPDATE conditions SET noisy = ? WHERE id = ?", ("; ".join(reasons) or None, conditions))
