"""Record every model on every image in one file; an interrupted recording resumes where it stopped."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.binomial import binomial_tail
from jetsel.calibrate.record.bench import Bench, RecordOptions
from jetsel.calibrate.record.conditions import NoiseMonitor, gather, run_by_turns
from jetsel.calibrate.record.contents import RecordingTask, list_tasks
from jetsel.calibrate.record.cuts import CutImage
from jetsel.calibrate.record.database import Store, convert_sqlite_errors
from jetsel.calibrate.record.examine import Examined, Examiner, write_results
from jetsel.calibrate.record.metering import meter_models
from jetsel.calibrate.record.photographs import FoundImages
from jetsel.calibrate.record.preprocessing import MOST_IMAGES, MOST_VARIANTS, check_preprocessing
from jetsel.calibrate.record.workers import Observer, RecordingPlan, Workers
from jetsel.engines import Backends, Engine, warm_up
from jetsel.zoo import Family, verify


def time_models(bench: Bench, budget_s: float) -> bool:
    """Time every model on random images that are not timed yet, as the TimingPlan says; return False if stopped.

    It ends when `budget_s` is spent, but not before `plan.least` images are timed.
    """
    plan, stop_s = bench.options.plan, time.monotonic() + budget_s
    images = bench.sample_images(plan.images)
    chosen = [(*one, missing) for one in images if (missing := bench.store.models_missing_in("timings", one[0]))]
    timed = len(images) - len(chosen)
    if not chosen or (timed >= plan.least and budget_s <= 0):
        return True
    bench.observer.report_progress("timing", 0, len(chosen))
    for done, (image_id, prepared, missing, on_gpu) in enumerate(bench.read_images(chosen), 1):
        _time_image(bench, image_id, prepared, missing)
        bench.check_machine(on_gpu)
        bench.observer.report_progress("timing", done, len(chosen))
        if bench.observer.stop.is_set():
            return False
        if timed + done >= plan.least and time.monotonic() >= stop_s:
            break
    return True


def _time_image(bench: Bench, image_id: int, prepared: CutImage, models: tuple[str, ...]) -> None:
    """Time models and features on one image; this features_ms replaces the one measured while recording."""
    execute = bench.store.connection.execute
    runs: dict[str, Callable[[], object]] = {name: partial(bench.run, name, prepared) for name in models}
    durations_by_name = run_by_turns({"": partial(bench.extract, prepared), **runs}, bench.options.plan.repeats)
    features_ms = statistics.median(durations_by_name.pop(""))
    execute("UPDATE photographs SET features_ms = ? WHERE id = ?", (features_ms, image_id))
    for name, durations_ms in durations_by_name.items():
        execute(
            "INSERT INTO timings SELECT ?, id, ?, ?, ? FROM wanted WHERE name = ?",
            (image_id, bench.conditions, statistics.median(durations_ms), len(durations_ms), name),
        )


LEAST_IMAGES = 300
# A model is dominated if a cheaper one is right nearly wherever the model is: it is recorded no further.
MOST_SHARE = 0.01  # largest share of images on which only the dominated model is right
RISK = 0.05  # that the true share is larger (one-sided; Clopper and Pearson, Biometrika 26, 1934)
MOST_TIME_RATIO = 0.9  # largest ratio of times: of two equally fast models, both are kept
DEFAULTS = Config()
ESTIMATED_BY = 3  # images per thread that estimate how long the recording takes


@contextmanager
def loaded_models(family: Family, config: Config = DEFAULTS) -> Iterator[dict[str, Engine]]:
    """Verify, load and warm up every model of the family; yield name -> engine, and close them after the block.

    Each engine serves one caller per core. Raises ManifestError, ConfigError or EngineFailedError.
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
    observer: Observer | None = None,
) -> bool:
    """Run the models in `engines` on the images, record their outputs, then time and meter the models.

    Return False if the observer stopped it. Results that the file at `path` has are not repeated; a kill loses at most
    a second of work. Unreadable files are skipped. Memory holds a few images at a time, and the path of every file.

    Raises CalibrationError if the file is refused or no image can be used, EngineFailedError if a model fails; the work
    done until then is kept.
    """
    cv2.setNumThreads(1)  # images are processed in parallel, as in the daemon, so each one uses one core
    observer, options = observer or Observer(), options or RecordOptions()
    opened, conditions = options.opened, gather(options.sysfs)
    with convert_sqlite_errors(path), Store(path, family, options.features_px) as store:
        served = [model for model in family.models if model.manifest.name in engines]
        store.set_models(served, family.models[0], options.always_recorded)
        run_id = store.begin_run(conditions)
        workers = Workers(store, options.workers, observer)
        tasks = list_tasks(store, images, workers)
        recorded, finished, began_s = 0, False, time.monotonic()
        if tasks is not None:
            examiner = Examiner(family, engines, options)
            first_results = _examine_first(tasks, examiner, options, observer)
            unproven = [model for model in served if model.manifest.name in options.unproven]
            check_preprocessing(unproven, images.photographs, examiner, options.limits, workers)
            recorded = _examine_all(store, tasks, first_results, examiner, workers, options.always_recorded)
            finished = not observer.stop.is_set()
        recording_s = time.monotonic() - began_s if recorded else 0.0
        if finished:
            _check_any_recorded(store, images)
            bench = Bench(store, family, engines, options, run_id, NoiseMonitor(options.sysfs), observer)
            finished = time_models(bench, budget_s=recording_s)
            if opened.meter is None:
                store.connection.execute("UPDATE conditions SET unmetered = ? WHERE id = ?", (opened.reason, run_id))
            elif finished:
                finished = meter_models(bench, opened.meter)
        return finished


def _examine_first(
    tasks: list[RecordingTask], examiner: Examiner, options: RecordOptions, observer: Observer
) -> dict[str, Examined | str]:
    """Examine a few images to announce how long all will take, and return their results, by the task's key.

    Without observer.announce, which receives the RecordingPlan, no image is examined here.
    """
    if observer.announce is None or not tasks:
        return {}
    threads = options.workers
    began_s, first_tasks = time.monotonic(), tasks[: ESTIMATED_BY * threads]
    with ThreadPoolExecutor(threads) as pool:
        first_examined = list(pool.map(examiner, first_tasks))
    examined = sum(not isinstance(result, str) for result in first_examined)
    recording_s = (time.monotonic() - began_s) / max(1, examined) * len(tasks)
    models = {name for task in tasks for name in task.missing}
    compared_ms = sum(median(ms) for name, ms in examiner.durations_ms.items() if name in options.unproven and ms)
    comparing_s = compared_ms / 1e3 * MOST_IMAGES * MOST_VARIANTS / threads
    observer.announce(
        RecordingPlan(len(tasks), len(models), 2 * recording_s + comparing_s)
    )  # timing takes as long as recording
    return {task.key: result for task, result in zip(first_tasks, first_examined, strict=True)}


def _examine_all(
    store: Store,
    tasks: list[RecordingTask],
    first_results: dict[str, Examined | str],
    examiner: Examiner,
    workers: Workers,
    always_recorded: Collection[str],
) -> int:
    """Examine and write all tasks until stopped; return how many were written. first_results: from `_examine_first`.

    Dominated models are dropped when 300, 600, 1,200, ... images are recorded.
    """

    def examine(task: RecordingTask) -> Examined | str:  # str: why the image is skipped
        return first_results.pop(task.key, None) or examiner(task)

    recorded = 0
    (total,) = store.connection.execute("SELECT COUNT(*) FROM chosen JOIN photographs USING (sha256)").fetchone()
    next_check = LEAST_IMAGES  # number of recorded images after which dominated models are dropped
    while next_check <= total:
        next_check *= 2
    with closing(workers.work("recording", examine, tasks)) as outcomes:
        for task, examined in outcomes:
            if isinstance(examined, str):
                store.add_skipped([(task.photograph.path, examined)])
                continue
            write_results(store, task, examined)
            recorded += 1
            total += task.number is None  # a new image; `total` counted those with a row already
            if total >= next_check:
                next_check *= 2
                _drop_dominated(store, examiner, always_recorded)
    return recorded


def _drop_dominated(store: Store, examiner: Examiner, always_recorded: Collection[str]) -> None:
    times_ms = {name: median(durations_ms) for name, durations_ms in examiner.durations_ms.items() if durations_ms}
    right = {name: values for name, values in correctness_by_model(store).items() if name in times_ms}
    for model, cheaper in dominated_models(right, times_ms):
        if model in always_recorded:
            continue
        saved = f"{cheaper} takes {times_ms[cheaper] / times_ms[model]:.2f} of its time"
        rare = f"fewer than {100 * MOST_SHARE:g} % of the first {len(right[model]):,} images are right by {model} alone"
        store.drop_model(model, f"{saved}, and {rare}")
        examiner.dropped.add(model)


def dominated_models(right: Mapping[str, NDArray[np.bool_]], times_ms: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return pairs of a model and a cheaper one that is right nearly wherever the model is, the most expensive first.

    right: model -> whether it is right, (n,). times_ms: by model. See MOST_SHARE, RISK and MOST_TIME_RATIO.
    """
    pairs: list[tuple[str, str]] = []
    remaining = sorted(right, key=times_ms.__getitem__, reverse=True)
    for model in list(remaining):
        for cheaper in reversed(remaining):  # the cheapest first
            if times_ms[cheaper] > MOST_TIME_RATIO * times_ms[model]:
                break
            only_model_right = int((right[model] & ~right[cheaper]).sum())
            if binomial_tail(only_model_right, len(right[model]), MOST_SHARE) < RISK:
                pairs.append((model, cheaper))
                remaining.remove(model)
                break
    return pairs


def correctness_by_model(store: Store) -> dict[str, NDArray[np.bool_]]:
    """Return model -> whether it is right, (n,), on the labelled images that all models of this run have answered."""
    execute = store.connection.execute
    complete = (
        "SELECT id FROM photographs JOIN chosen USING (sha256) WHERE class IS NOT NULL AND (SELECT COUNT(*) FROM"
        " predictions WHERE photograph = id AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
    )
    right_by_model: dict[str, list[bool]] = {}
    for name, number, logits in execute(
        "SELECT name, class, logits FROM predictions JOIN wanted ON wanted.id = model"
        f" JOIN photographs p ON p.id = photograph WHERE p.id IN ({complete}) ORDER BY p.id"
    ):
        right_by_model.setdefault(name, []).append(int(np.frombuffer(logits, "<f2").argmax()) == number)
    return {name: np.array(values) for name, values in right_by_model.items()}


def _check_any_recorded(store: Store, images: FoundImages) -> None:
    """Raise CalibrationError with the last reason for skipping a file if none of the images is recorded."""
    execute = store.connection.execute
    if execute("SELECT 1 FROM chosen JOIN photographs USING (sha256) LIMIT 1").fetchone() is None:
        path, reason = execute("SELECT path, reason FROM skipped ORDER BY rowid DESC LIMIT 1").fetchone()
        raise CalibrationError(
            f"{images.source}: none of {len(images.photographs)} images can be used; last reason: {path}: {reason}; "
            "name a folder with whole JPEG, PNG or WebP files"
        )
