"""Record: every model on every photograph into one file, once; what was interrupted goes on where it was."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import cv2

from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.base.names import count_reasons
from jetsel.calibrate.record.bench import Bench, RecordOptions, ShownImage
from jetsel.calibrate.record.conditions import NoiseMonitor, gather
from jetsel.calibrate.record.contents import Task, claim
from jetsel.calibrate.record.database import Store, faults
from jetsel.calibrate.record.dominated import LEAST_IMAGES, MOST_SHARE, dominated, right_of
from jetsel.calibrate.record.durations import run_by_turns
from jetsel.calibrate.record.examine import Examined, Examiner, write
from jetsel.calibrate.record.metering import meter_models
from jetsel.calibrate.record.photographs import FoundImages
from jetsel.calibrate.record.preprocessing import MOST_IMAGES, MOST_WAYS, check_models
from jetsel.calibrate.record.workers import Stop, Tell, Workers, progress
from jetsel.engines import Backends, Engine, warm_up
from jetsel.zoo import Family, verify


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


DEFAULTS = Config()
ESTIMATED_BY = 3  # images, for each thread


@dataclass(frozen=True)
class Recorded:
    """What a run did. photographs: how many the recording has in all; recorded: how many were new or had new models.

    skipped: kind of reason -> files. finished: False if stopped. What stands in the file is read with `load`.
    """

    photographs: int
    recorded: int
    skipped: Mapping[str, int]
    finished: bool


class RecordingPlan(NamedTuple):
    """What a run has to do: images that lack answers, models that lack them. estimated_s: of recording and timing."""

    images: int
    models: int
    estimated_s: float


@contextmanager
def loaded_models(family: Family, config: Config = DEFAULTS) -> Iterator[dict[str, Engine]]:
    """Check, load and warm up every model of the family: name -> engine; closed at the end.

    Engines serve as many callers as there are cores.
    Raises ManifestError, ConfigError or EngineFailedError.
    """
    engines: dict[str, Engine] = {}
    settings = config.models
    backends = Backends(config.host)
    cores = len(os.sched_getaffinity(0))
    try:
        for model in family.models:
            manifest = model.manifest
            verify(model)
            weights = model.weights(len(family.labels.wnids))
            chosen = settings.backends.get(manifest.name, settings.backend)
            engine = backends.open(chosen, weights, concurrency=cores, threads=settings.threads)
            engines[manifest.name] = engine
            warm_up(engine, weights, (1,))
        yield engines
    finally:
        for engine in engines.values():
            engine.close()
        backends.close()


def record(
    path: Path,
    family: Family,
    engines: Mapping[str, Engine],
    images: FoundImages,
    options: RecordOptions | None = None,
    tell: Tell | None = None,
    stop: Stop | None = None,
    announce: Callable[[RecordingPlan], None] | None = None,
) -> Recorded:
    """Record the photographs under the family's models that `engines` holds, then time and meter the models.

    Whatever the file at `path` has is not done again; a kill at any moment loses at most a second's work. What cannot
    be read is listed and stops nothing. Memory holds a few photographs at a time, and of each file its path.
    announce: receives what is to be done, and how long it may take, before it begins.

    Raises CalibrationError if the file is refused or no photograph can be used, EngineFailedError if a model
    fails; what was done until then stays.
    """
    cv2.setNumThreads(1)  # photographs are worked on beside each other, as in the daemon: none shall take every core
    halt, options = stop or threading.Event(), options or RecordOptions()
    opened, conditions = options.opened, gather(options.sysfs)
    with faults(path), Store(path, family, options.features_px) as store:
        served = [model for model in family.models if model.manifest.name in engines]
        store.set_models(served, family.models[0], options.kept)
        number = store.begin(conditions)
        workers = Workers(store, options.workers, tell, halt)
        tasks = claim(store, images, workers)
        recorded, finished, began_s = 0, False, time.monotonic()
        if tasks is not None:
            examiner = Examiner(family, engines, options)
            first = {} if announce is None or not tasks else _examine_first(tasks, examiner, options, announce)
            unproven = [model for model in served if model.manifest.name in options.unproven]
            check_models(unproven, images.photographs, examiner, options.limits, workers)
            recorded = _examine_all(store, tasks, first, examiner, workers, options.kept)
            finished = not halt.is_set()
        recording_s = time.monotonic() - began_s if recorded else 0.0
        if finished:
            _refuse_none(store, images)
            bench = Bench(store, family, engines, options, number, NoiseMonitor(options.sysfs), tell, halt)
            finished = time_models(bench, budget_s=recording_s)
            if opened.meter is None:
                store.connection.execute("UPDATE conditions SET unmetered = ? WHERE id = ?", (opened.reason, number))
            elif finished:
                finished = meter_models(bench, opened.meter)
        return _summary(store, recorded, finished)


def _examine_first(
    tasks: list[Task], examiner: Examiner, options: RecordOptions, announce: Callable[[RecordingPlan], None]
) -> dict[str, Examined | str]:
    """Examine a few images and announce how long all take by them; return what was seen of them, by key."""
    threads = options.workers
    began_s, first = time.monotonic(), tasks[: ESTIMATED_BY * threads]
    with ThreadPoolExecutor(threads) as pool:
        first_examined = list(pool.map(examiner, first))
    examined = sum(not isinstance(one, str) for one in first_examined)
    recording_s = (time.monotonic() - began_s) / max(1, examined) * len(tasks)
    models = {name for task in tasks for name in task.missing}
    compared_ms = sum(median(ms) for name, ms in examiner.taken_ms.items() if name in options.unproven and ms)
    comparing_s = compared_ms / 1e3 * MOST_IMAGES * MOST_WAYS / threads
    announce(RecordingPlan(len(tasks), len(models), 2 * recording_s + comparing_s))  # timing takes as long as recording
    return {task.key: one for task, one in zip(first, first_examined, strict=True)}


def _examine_all(
    store: Store,
    tasks: list[Task],
    first: dict[str, Examined | str],
    examiner: Examiner,
    workers: Workers,
    always_recorded: Collection[str],
) -> int:
    """Examine what lacks predictions until stopped, except for the `first`; return how many have them now.

    Models that a cheaper one makes superfluous are looked for when 300, 600, 1,200, ... images are recorded.
    """

    def examine(task: Task) -> Examined | str:
        return first.pop(task.key, None) or examiner(task)

    recorded = 0
    (count,) = store.connection.execute("SELECT COUNT(*) FROM chosen JOIN photographs USING (sha256)").fetchone()
    due = LEAST_IMAGES
    while due <= count:
        due *= 2
    with closing(workers.work("recording", examine, tasks)) as outcomes:
        for task, examined in outcomes:
            if isinstance(examined, str):
                store.skip([(task.photograph.path, examined)])
                continue
            write(store, task, examined)
            recorded += 1
            count += task.number is None
            if count >= due:
                due *= 2
                _drop(store, examiner, always_recorded)
    return recorded


def _drop(store: Store, examiner: Examiner, always_recorded: Collection[str]) -> None:
    times_ms = {name: median(taken_ms) for name, taken_ms in examiner.taken_ms.items() if taken_ms}
    right = {name: values for name, values in right_of(store).items() if name in times_ms}
    for model, by in dominated(right, times_ms):
        if model in always_recorded:
            continue
        saved = f"{by} takes {times_ms[by] / times_ms[model]:.2f} of its time"
        few = f"fewer than {100 * MOST_SHARE:g} % of the first {len(right[model]):,} images are right by {model} alone"
        store.drop(model, f"{saved}, and {few}")
        examiner.dropped.add(model)


def _refuse_none(store: Store, images: FoundImages) -> None:
    """Raise if not one of the photographs that were found is recorded."""
    execute = store.connection.execute
    if execute("SELECT 1 FROM chosen JOIN photographs USING (sha256) LIMIT 1").fetchone() is None:
        path, reason = execute("SELECT path, reason FROM skipped ORDER BY rowid DESC LIMIT 1").fetchone()
        raise CalibrationError(
            f"{images.source}: none of {len(images.photographs)} images can be used, the last: {path}: {reason}; "
            "name a folder with whole JPEG, PNG or WebP files"
        )


def _summary(store: Store, recorded: int, finished: bool) -> Recorded:
    execute = store.connection.execute
    (photographs,) = execute("SELECT COUNT(*) FROM photographs").fetchone()
    reasons = [reason for (reason,) in execute("SELECT reason FROM skipped")]
    return Recorded(photographs, recorded, count_reasons(reasons), finished)
