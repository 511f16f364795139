"""Find which image files are new, which are duplicates, and which have contradictory labels."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.files import sha256_of
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.photographs import FoundImages, Labelled
from jetsel.calibrate.record.workers import Workers

SEED = 2018  # for the order in which images are recorded and timed

FileHash = tuple[int, int, str]
"""A hashed file: size in bytes, time of its last change in ns, SHA-256 in hexadecimal."""


@dataclass(frozen=True)
class RecordingTask:
    """An image to run models on."""

    photograph: Labelled
    sha256: str  # of the file
    key: str  # of the part of the file that models get, see `Cut.key`
    number: int | None  # id of its row, None if it is new
    missing: tuple[str, ...]  # the models without a prediction for it


def list_tasks(store: Store, images: FoundImages, workers: Workers) -> list[RecordingTask] | None:
    """Hash the files, skip duplicates, and return the images that lack predictions; None if stopped.

    Files with equal content count once, under the first path, or not at all if their labels differ. Each run replaces
    the list of skipped files, and updates the labels of images that are recorded already.
    """
    copies: dict[tuple[str, str], list[Labelled]] = defaultdict(list)  # by key and hash of the file
    unreadable: list[tuple[Path, str]] = []
    stored_hashes = {path: tuple(content) for path, *content in store.connection.execute("SELECT * FROM files")}
    images_of_path: dict[Path, list[Labelled]] = defaultdict(list)
    for photograph in images.photographs:
        images_of_path[photograph.path].append(photograph)
    paths_with_hashes = [(path, stored_hashes.get(str(path))) for path in images_of_path]
    with closing(workers.work("reading", _hash_file, paths_with_hashes)) as contents:
        for (path, stored), content in contents:
            if isinstance(content, str):
                unreadable.append((path, content))
                continue
            for photograph in images_of_path[path]:
                copies[photograph.cut.key(content[2]), content[2]].append(photograph)
            if content != stored:
                row = (str(path), *content)
                store.connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)
    if workers.observer.stop.is_set():
        return None
    store.connection.execute("DELETE FROM skipped")
    store.add_skipped((skipped.path, skipped.reason) for skipped in images.skipped)
    store.add_skipped(unreadable)
    chosen = _choose_distinct(store, copies)
    tasks = []
    for key, sha256 in sorted(chosen, key=lambda one: drawn_order(one[0])):
        row = store.connection.execute("SELECT id FROM photographs WHERE sha256 = ?", (key,)).fetchone()
        image_id = None if row is None else row[0]
        tasks.append(
            RecordingTask(chosen[key, sha256], sha256, key, image_id, store.models_missing_in("predictions", image_id))
        )
    return [task for task in tasks if task.missing]


def drawn_order(sha256: str, seed: int = SEED) -> bytes:
    """Return a sort key that puts images in a random but repeatable order.

    It depends on seed and content alone, so a smaller sample is the beginning of a larger one.
    """
    return hashlib.sha256(f"{seed} {sha256}".encode()).digest()


def _hash_file(item: tuple[Path, FileHash | None]) -> FileHash | str:
    """Return a file's size, date and hash, or why it cannot be read. item: its path, and its entry of an earlier run.

    The earlier hash is reused if size and date are unchanged.
    """
    path, stored = item
    try:
        status = path.stat()
        if stored is not None and stored[:2] == (status.st_size, status.st_mtime_ns):
            return stored
        sha256 = sha256_of(path)
    except OSError as fault:
        return f"unreadable: {fault.strerror}"
    return status.st_size, status.st_mtime_ns, sha256


def _choose_distinct(store: Store, copies: Mapping[tuple[str, str], list[Labelled]]) -> dict[tuple[str, str], Labelled]:
    """Return each distinct image at its first path, and list duplicates and contradictory labels as skipped.

    copies, and the result: by key and hash of the file. Recorded images get their current path and label in the store.
    """
    execute = store.connection.execute
    execute("CREATE TEMP TABLE chosen (sha256 TEXT PRIMARY KEY)")
    chosen = {}
    for (key, sha256), photographs in copies.items():
        original, *duplicates = photographs
        labels = {photograph.class_number: photograph.label or "" for photograph in photographs}
        if len(labels) > 1:
            one_label, other_label = min(labels.values()), max(labels.values())
            reason = f"contradictory: the same file is labelled {one_label} and {other_label}; keep one"
            store.add_skipped((photograph.path, reason) for photograph in photographs)
            execute("DELETE FROM photographs WHERE sha256 = ?", (key,))
        else:
            store.add_skipped((copy.path, f"duplicate: the same file as {original.path}") for copy in duplicates)
            chosen[key, sha256] = original
            execute("INSERT INTO chosen VALUES (?)", (key,))
            execute(
                "UPDATE photographs SET path = ?, class = COALESCE(?, class), label = COALESCE(?, label)"
                " WHERE sha256 = ?",
                (str(original.path), original.class_number, original.label, key),
            )
    return chosen
