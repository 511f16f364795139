"""Read a recording back: the models' outputs, costs and conditions."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import BoundIdentities
from jetsel.base.errors import CalibrationError
from jetsel.base.weights import HASH_BYTES, learned_images
from jetsel.calibrate.record.conditions import Conditions
from jetsel.calibrate.record.database import open_to_read
from jetsel.calibrate.record.recording import Energies, LoadedRecording, Recording, Times, size_categories
from jetsel.features import NAMES, table_hash
from jetsel.features.near_duplicates import groups
from jetsel.zoo import Family, Model


def load(
    path: Path, family: Family, models: Sequence[str] | None = None, labels_from: str | None = None
) -> LoadedRecording:
    """Read the recording at `path`: the images that all models have answered. models: names, None for the whole family.

    labels_from: the model whose first answers replace the labels; then images without a label are included. Raises
    CalibrationError if the file is no recording of this family, if a model was not recorded or has new weights, or if
    no image is complete, labelled and timed.
    """
    hash_of_model = {one.manifest.name: one.manifest.identity for one in family.models}
    hash_of_model = {name: identity for name, identity in hash_of_model.items() if models is None or name in models}
    with open_to_read(path, family) as file:
        _check_models(file, path, hash_of_model)
        dropped = dict(file.execute("SELECT name, reason FROM dropped JOIN models ON models.id = model"))
        notes = dict(file.execute("SELECT identity, value FROM meta JOIN models ON key = 'preprocessing ' || identity"))
        doubts = {name: notes[identity] for name, identity in hash_of_model.items() if notes.get(identity)}
        costs_ms, times = _read_times(file, path, tuple(name for name in hash_of_model if name not in dropped))
        rows = _complete_images(file, path, tuple(costs_ms), labels_from is None)
        recording = _build_recording(file, family, costs_ms, rows, labels_from)
        energies = read_energies(file, recording.models)
        (pixels,) = file.execute("SELECT value FROM meta WHERE key = 'features_px'").fetchone()
        left_out = file.execute("SELECT path, reason FROM skipped ORDER BY path").fetchall()
    identity = BoundIdentities(
        family=family.name,
        labels_sha256=family.labels.sha256,
        identities={name: hash_of_model[name] for name in costs_ms},
        feature_table=table_hash(),
        decode_px=family.decode_px,
        features_px=int(pixels),
    )
    learned = learned_share([one for one in family.models if one.manifest.name in costs_ms], [row[5] for row in rows])
    if isinstance(energies, str):
        times = replace(times, energy_reason=energies)
    else:
        recording = replace(recording, energies=energies)
    names = family.labels.names
    return LoadedRecording(recording, times, identity, names, left_out, labels_from, learned, dropped, doubts)


def _build_recording(
    file: sqlite3.Connection,
    family: Family,
    costs_ms: Mapping[str, float],
    rows: Sequence[_ImageRow],
    labels_from: str | None,
) -> Recording:
    """Return the Recording of the images in `rows`, from `_complete_images`. costs_ms: by model, cheapest first."""
    names = tuple(costs_ms)
    logits, embeddings = _read_outputs(file, names, [row[0] for row in rows], len(family.labels.wnids))
    classes = np.array([-1 if row[2] is None else row[2] for row in rows], np.int64)
    if labels_from is not None:
        classes = logits[names.index(labels_from)].argmax(axis=1)
    features = np.stack([np.frombuffer(row[4], "<f4") for row in rows]).reshape(len(rows), len(NAMES))
    return Recording(
        models=names,
        logits=logits,
        classes=classes,
        features=features,
        sizes=size_categories(features, family.decode_px),
        costs_ms=costs_ms,
        embeddings=embeddings,
        groups=groups(np.array([row[3] for row in rows], np.int64)),
        paths=tuple(row[1] for row in rows),
    )


_ImageRow = tuple[int, str, int, int, bytes, str]  # id, path, class, near_hash, features, hash of the file


def learned_share(models: Sequence[Model], hashes: Sequence[str]) -> float:
    """Return the share of images that were used to train a head of these models. hashes: SHA-256 of each image."""
    heads = [model.directory / model.manifest.head.file for model in models if model.manifest.head is not None]
    learned: set[str] = set().union(*map(learned_images, heads))
    return float(np.mean([sha256[: 2 * HASH_BYTES] in learned for sha256 in hashes]))


def _check_models(file: sqlite3.Connection, path: Path, models: Mapping[str, str]) -> None:
    """Raise CalibrationError if a model is not recorded, or with other weights. models: name -> hash of its weights."""
    recorded = dict(file.execute("SELECT name, identity FROM models").fetchall())
    for name, identity in models.items():
        if recorded.get(name) != identity:
            problem = "was recorded with other weights" if name in recorded else "was not recorded"
            raise CalibrationError(f"{path}: {name} {problem}; record into it again, only that model will run")


def _complete_images(file: sqlite3.Connection, path: Path, models: tuple[str, ...], labelled: bool) -> list[_ImageRow]:
    """Return the images that every model has answered, in the order of their paths. labelled: only those with a class.

    Raises CalibrationError if there are none.
    """
    marks = ", ".join("?" * len(models))
    rows = file.execute(
        "SELECT id, path, class, near_hash, features, source FROM photographs WHERE"
        " (SELECT COUNT(*) FROM predictions WHERE"
        f" photograph = photographs.id AND model IN (SELECT id FROM models WHERE name IN ({marks}))) = ?"
        + (" AND class IS NOT NULL" if labelled else "")
        + " ORDER BY path, sha256",
        (*models, len(models)),
    ).fetchall()
    if not rows:
        noun = "labelled image" if labelled else "image"
        raise CalibrationError(f"{path}: no {noun} has results from every model; run the recording to its end")
    return rows


def _read_outputs(
    file: sqlite3.Connection, models: tuple[str, ...], photographs: list[int], classes: int
) -> tuple[NDArray[np.float16], NDArray[np.float16] | None]:
    """Return the models' logits (m, n, c), and the first model's embeddings (n, width), None if an image lacks one.

    photographs: ids of n images, in the order of the results. classes: c, the number of classes.
    """
    row_of_id = {photograph: row for row, photograph in enumerate(photographs)}
    logits = np.empty((len(models), len(photographs), classes), np.float16)
    embeddings: dict[int, NDArray[np.float16]] = {}
    for column, model in enumerate(models):
        for photograph, logits_bytes, embedding in file.execute(
            "SELECT photograph, logits, embedding FROM predictions JOIN models ON models.id = model WHERE name = ?",
            (model,),
        ):
            row = row_of_id.get(photograph)
            if row is None:
                continue
            if len(logits_bytes) != 2 * classes:  # NumPy would broadcast a single number to all classes
                raise ValueError(f"{len(logits_bytes)} bytes of logits do not fit {classes} classes")
            logits[column, row] = np.frombuffer(logits_bytes, "<f2")
            if column == 0 and embedding is not None:
                embeddings[row] = np.frombuffer(embedding, "<f2")
    is_complete = len(embeddings) == len(photographs)
    return logits, np.stack([embeddings[row] for row in range(len(photographs))]) if is_complete else None


def _read_times(file: sqlite3.Connection, path: Path, models: tuple[str, ...]) -> tuple[dict[str, float], Times]:
    """Return model -> median ms over the images on which every model was timed, cheapest first, and the Times.

    This order replaces the family's own, which comes from one run when each model was added.
    """
    marks = ", ".join("?" * len(models))
    timings = file.execute(
        "SELECT name, median_ms, conditions, photograph FROM timings JOIN models ON models.id = model"
        f" WHERE name IN ({marks})",
        models,
    ).fetchall()
    images_of_model = [{row[3] for row in timings if row[0] == model} for model in models]
    common = set.intersection(*images_of_model)
    if not common:
        raise CalibrationError(f"{path}: some models are not timed; run the recording to its end")
    timed_here = [row for row in timings if row[3] in common]
    times_ms = {model: float(np.median([row[1] for row in timed_here if row[0] == model])) for model in models}
    costs_ms = dict(sorted(times_ms.items(), key=lambda item: item[1]))
    features = [file.execute("SELECT features_ms FROM photographs WHERE id = ?", (one,)).fetchone() for one in common]
    runs = [
        file.execute("SELECT noisy, found FROM conditions WHERE id = ?", (run_id,)).fetchone()
        for run_id in sorted({row[2] for row in timed_here})
    ]
    noisy = "; ".join(dict.fromkeys(reason for reason, _ in runs if reason)) or None
    conditions = msgspec.json.decode(runs[-1][1], type=Conditions).described()
    return costs_ms, Times(float(np.median(features)), conditions, noisy, None)


NOT_ENDED = "the energy of some models is not measured; run the recording to its end"
_FEATURES = "the features"

_EnergyRow = tuple[str, int, float, float, float, float, float]  # name, image, mean mJ, its three errors in mJ, mean ms


def read_energies(file: sqlite3.Connection, models: Sequence[str]) -> Energies | str:
    """Return the energies of these models and of the features, or the reason why they are unknown."""
    rows: list[_EnergyRow] = file.execute(
        "SELECT COALESCE(name, ?), photograph, mean_mj, scatter_mj, sensor_mj, idle_mj, mean_ms FROM energies"
        " LEFT JOIN models ON models.id = model WHERE mean_mj NOT NULL",
        (_FEATURES,),
    ).fetchall()
    names = (*models, _FEATURES)
    common = set.intersection(*({row[1] for row in rows if row[0] == name} for name in names))
    if not common:
        return _why_energy_unknown(file)
    rows_of = {name: [row for row in rows if row[0] == name and row[1] in common] for name in names}
    mean_mj = {name: float(np.mean([row[2] for row in model_rows])) for name, model_rows in rows_of.items()}
    half_mj = {name: _half_width_mj(model_rows) for name, model_rows in rows_of.items()}
    for name in names:
        if mean_mj[name] <= half_mj[name]:
            return (
                f"the energy of {name} cannot be distinguished from zero: {mean_mj[name]:.3g} \u00b1 "
                f"{half_mj[name]:.3g} mJ a run; measure idle power again, with no other programs running"
            )
    chooser_w = mean_mj.pop(_FEATURES) / float(np.mean([row[6] for row in rows_of[_FEATURES]]))
    return Energies(mean_mj, {name: half_mj[name] for name in models}, chooser_w)


def _half_width_mj(rows: Sequence[_EnergyRow]) -> float:
    """Return half the 95 % interval of a model's mean energy, its errors added in quadrature (JCGM 100:2008, 5.1.2).

    The errors of the windows' scatter and of the sensor are independent between images; `sensor_mj` is 0 except in
    recordings of earlier versions. The error of the idle power is the same for all images.
    """
    independent_mj = math.sqrt(sum(row[3] ** 2 + row[4] ** 2 for row in rows)) / len(rows)
    return math.hypot(independent_mj, float(np.mean([row[5] for row in rows])))


def _why_energy_unknown(file: sqlite3.Connection) -> str:
    """Return why energies are unknown: a window failed, the last run had no meter, or it did not end."""
    failed_window = file.execute("SELECT reason FROM energies WHERE mean_mj IS NULL LIMIT 1").fetchone()
    last_run = file.execute("SELECT unmetered FROM conditions ORDER BY id DESC LIMIT 1").fetchone()
    row = failed_window or last_run or (None,)
    return row[0] or NOT_ENDED
