"""Small photographs in class folders, families cut out of the starter's, and recordings as plain values to compare."""

import dataclasses
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from jetsel.base.names import count_reasons
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.photographs import FoundImages, find_images
from jetsel.calibrate.record.recorder import record
from jetsel.calibrate.record.workers import Observer
from jetsel.engines import Engine
from jetsel.zoo import STARTER, Family, scan

STARTER_FAMILY = scan([STARTER]).families["starter"]
LABELS = STARTER_FAMILY.labels
QUICK = RecordOptions(workers=2, plan=TimingPlan(images=4, repeats=2))
TEN_TIMED = RecordOptions(workers=2, plan=TimingPlan(images=10, repeats=2))


def family(*names: str) -> Family:
    """The starter family with some of its models only."""
    models = tuple(model for model in STARTER_FAMILY.models if model.manifest.name in names)
    return dataclasses.replace(STARTER_FAMILY, models=models)


def draw(seed: int, width: int = 96, height: int = 72) -> np.ndarray:
    """Blurred noise, so that any two differ in their low frequencies."""
    noise = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)


def jpeg(seed: int, width: int = 96, height: int = 72) -> bytes:
    done, data = cv2.imencode(".jpg", draw(seed, width, height))
    assert done
    return data.tobytes()


def put(folder: Path, count: int, first_seed: int = 0, classes: int = 3, width: int = 96) -> Path:
    """Write `count` photographs into class folders by turns; return the folder."""
    for seed in range(first_seed, first_seed + count):
        place = folder / LABELS.wnids[seed % classes]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{seed:03}.jpg").write_bytes(jpeg(seed, width, width * 3 // 4))
    return folder


def found(folder: Path, need_labels: bool = True) -> FoundImages:
    return find_images(folder, LABELS, None, need_labels)


def shown(family: Family, folder: Path) -> FoundImages:
    """Three photographs of two classes of a family, written into this folder."""
    for number in range(3):
        place = folder / family.labels.wnids[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(jpeg(number))
    return find_images(folder, family.labels, None, need_labels=True)


class Run(NamedTuple):
    """A call of `record`, and the file after it. due: images that lacked predictions. photographs: all recorded."""

    finished: bool
    due: int
    photographs: int
    skipped: Mapping[str, int]


def run(path: Path, of: Family, engines: Mapping[str, Engine], images: FoundImages, options: RecordOptions) -> Run:
    """Record the images, and return what that was."""
    totals: dict[str, int] = {}
    observer = Observer(lambda phase, _, total: totals.__setitem__(phase, total))
    finished = record(path, of, engines, images, options, observer)
    ((photographs,),) = rows(path, "SELECT COUNT(*) FROM photographs")
    skipped = count_reasons(reason for (reason,) in rows(path, "SELECT reason FROM skipped"))
    return Run(finished, totals["recording"], photographs, skipped)


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA foreign_keys=ON")
        file.execute(statement, values)


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a recording holds but times, conditions and the numbers of its rows."""
    return {
        "meta": rows(path, "SELECT * FROM meta ORDER BY key"),
        "models": rows(path, "SELECT name, identity FROM models ORDER BY name"),
        "photographs": rows(
            path,
            "SELECT path, sha256, class, label, width_px, height_px, near_hash, features FROM photographs"
            " ORDER BY path",
        ),
        "predictions": rows(
            path,
            "SELECT path, name, logits, embedding FROM predictions JOIN models ON models.id = model"
            " JOIN photographs ON photographs.id = photograph ORDER BY path, name",
        ),
        "timed": rows(
            path,
            "SELECT path, name FROM timings JOIN models ON models.id = model"
            " JOIN photographs ON photographs.id = photograph ORDER BY path, name",
        ),
        "skipped": rows(path, "SELECT * FROM skipped ORDER BY path"),
        "files": rows(path, "SELECT * FROM files ORDER BY path"),
    }
