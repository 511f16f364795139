"""Read a recording back: what was said, what it cost, and under which conditions."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError
from jetsel.base.names import count_reasons
from jetsel.base.weights import HASH_BYTES, learned_images
from jetsel.calibrate.record.conditions import Conditions
from jetsel.calibrate.record.database import opened_to_read
from jetsel.calibrate.record.recording import Energies, LoadedRecording, Recording, Times, kinds_of_size
from jetsel.features import NAMES
from jetsel.features.near_duplicates import groups
from jetsel.zoo import Family, Model


def load(
    path: Path,
    family: Family,
    models: Sequence[str] | None = None,
    labels_from: str | None = None,
) -> LoadedRecording:
    """Read what the family's models, or those named, said of each photograph that all of them have seen.

    labels_from: take this model's first answers as the
    classes, and photographs without a label too. Raises CalibrationError if the file is refused, a model was not
    recorded or has other weights by now, or nothing is complete, labelled and timed.
    """
    identities_here = {model.manifest.name: model.manifest.identity for model in family.models}
    chosen_identities = {
        name: identity for name, identity in identities_here.items() if models is None or name in models
    }
    with opened_to_read(path, family) as file:
        _refuse_others(file, path, chosen_identities)
        dropped = dict(file.execute("SELECT name, reason FROM dropped JOIN models ON models.id = model"))
        notes = dict(file.execute("SELECT identity, value FROM meta JOIN models ON key = 'preprocessing ' || identity"))
        doubts = {name: notes[identity] for name, identity in chosen_identities.items() if notes.get(identity)}
        chosen_identities = {name: identity for name, identity in chosen_identities.items() if name not in dropped}
        times = _times(file, path, tuple(chosen_identities))
        names = tuple(times.costs_ms)
        rows = _complete(file, path, names, labels_from is None)
        logits, embeddings = _said(file, names, [row[0] for row in rows], len(family.labels.wnids))
        classes = np.array([-1 if row[2] is None else row[2] for row in rows], np.int64)
        if labels_from is not None:
            classes = logits[names.index(labels_from)].argmax(axis=1)
        features = np.stack([np.frombuffer(row[4], "<f4") for row in rows]).reshape(len(rows), len(NAMES))
        recording = Recording(
            models=names,
            logits=logits,
            classes=classes,
            features=features,
            sizes=kinds_of_size(features, family.decode_px),
            costs_ms=times.costs_ms,
            **_of_energy(times.energies),
            embeddings=embeddings,
            groups=groups(np.array([row[3] for row in rows], np.int64)),
            paths=tuple(row[1] for row in rows),
        )
        (pixels,) = file.execute("SELECT value FROM meta WHERE key = 'features_px'").fetchone()
        left_out = file.execute("SELECT path, reason FROM skipped ORDER BY path").fetchall()
        hashes = dict(file.execute("SELECT id, source FROM photographs"))
    learned = learned_share(
        [model for model in family.models if model.manifest.name in names], [hashes[r[0]] for r in rows]
    )
    skipped = count_reasons([reason for _, reason in left_out])
    identities = {name: chosen_identities[name] for name in names}
    return LoadedRecording(
        recording, times, skipped, left_out, identities, int(pixels), family.name, labels_from, learned, dropped, doubts
    )


def learned_share(models: Sequence[Model], hashes: Sequence[str]) -> float:
    """The share of the images that one of the models' heads was trained on; hashes: of the images."""
    heads = [model.directory / model.manifest.head.file for model in models if model.manifest.head is not None]
    learned: set[str] = set().union(*map(learned_images, heads))
    return float(np.mean([one[: 2 * HASH_BYTES] in learned for one in hashes]))


def _refuse_others(file: sqlite3.Connection, path: Path, models: Mapping[str, str]) -> None:
    """Raise if one of the models is not recorded, or with other weights. models: name -> identity."""
    recorded = dict(file.execute("SELECT name, identity FROM models").fetchall())
    for name, identity in models.items():
        if recorded.get(name) != identity:
            what = "was recorded with other weights" if name in recorded else "was not recorded"
            raise CalibrationError(f"{path}: {name} {what}; record into it again, only that model will run")


def _complete(
    file: sqlite3.Connection, path: Path, models: tuple[str, ...], labelled: bool
) -> list[tuple[int, str, int, int, bytes]]:
    """(id, path, class, near_hash, features) of the photographs that every model has seen."""
    marks = ", ".join("?" * len(models))
    rows = file.execute(
        "SELECT id, path, class, near_hash, features FROM photographs WHERE (SELECT COUNT(*) FROM predictions WHERE"
        f" photograph = photographs.id AND model IN (SELECT id FROM models WHERE name IN ({marks}))) = ?"
        + (" AND class IS NOT NULL" if labelled else "")
        + " ORDER BY path, sha256",
        (*models, len(models)),
    ).fetchall()
    if not rows:
        what = "labelled image" if labelled else "image"
        raise CalibrationError(f"{path}: no {what} has results from every model; run the recording to its end")
    return rows


def _said(
    file: sqlite3.Connection, models: tuple[str, ...], photographs: list[int], classes: int
) -> tuple[NDArray[np.float16], NDArray[np.float16] | None]:
    """Logits (m, n, c) of the models, and the embeddings (n, width) of the first."""
    place = {photograph: i for i, photograph in enumerate(photographs)}
    logits = np.empty((len(models), len(photographs), classes), np.float16)
    embeddings: dict[int, NDArray[np.float16]] = {}
    for column, model in enumerate(models):
        for photograph, logits_bytes, embedding in file.execute(
            "SELECT photograph, logits, embedding FROM predictions JOIN models ON models.id = model WHERE name = ?",
            (model,),
        ):
            row = place.get(photograph)
            if row is None:
                continue
            if len(logits_bytes) != 2 * classes:  # one number alone would be spread over all classes
                raise ValueError(f"{len(logits_bytes)} bytes of logits do not fit {classes} classes")
            logits[column, row] = np.frombuffer(logits_bytes, "<f2")
            if column == 0 and embedding is not None:
                embeddings[row] = np.frombuffer(embedding, "<f2")
    whole = len(embeddings) == len(photographs)
    return logits, np.stack([embeddings[row] for row in range(len(photographs))]) if whole else None


def _times(file: sqlite3.Connection, path: Path, models: tuple[str, ...]) -> Times:
    """Medians over the photographs on which every one of the models was timed; costs_ms: cheapest first.

    The order of the family is that of one run when each model was added, perhaps on a busy machine.
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
    noisy, conditions = _conditions(file, sorted({row[2] for row in timed_here}))
    energies = read_energies(file, models)
    energies_mj, reason = (None, energies) if isinstance(energies, str) else (energies, None)
    return Times(costs_ms, float(np.median(features)), conditions, noisy, energies_mj, reason)


def _of_energy(energies: Energies | None) -> dict[str, Any]:
    """What a recording holds of them."""
    return {
        "energies_mj": None if energies is None else energies.mean_mj,
        "chooser_w": None if energies is None else energies.chooser_w,
    }


def _conditions(file: sqlite3.Connection, numbers: list[int]) -> tuple[str | None, dict[str, str]]:
    """The noise of the runs that timed, and the conditions of the last of them."""
    conditions = [
        file.execute("SELECT noisy, found FROM conditions WHERE id = ?", (number,)).fetchone() for number in numbers
    ]
    reasons = dict.fromkeys(noisy for noisy, _ in conditions if noisy)
    return "; ".join(reasons) or None, msgspec.json.decode(conditions[-1][1], type=Conditions).described()


NOT_ENDED = "the energy of some models is not measured; run the recording to its end"
_FEATURES = "the features"

_Row = tuple[str, int, float, float, float, float, float]  # what, photograph, mJ: mean, its three errors; ms


def read_energies(file: sqlite3.Connection, models: Sequence[str]) -> Energies | str:
    """Return the energies of these models and of the features, or the reason why they are not known."""
    rows: list[_Row] = file.execute(
        "SELECT COALESCE(name, ?), photograph, mean_mj, scatter_mj, sensor_mj, idle_mj, mean_ms FROM energies"
        " LEFT JOIN models ON models.id = model WHERE mean_mj NOT NULL",
        (_FEATURES,),
    ).fetchall()
    names = (*models, _FEATURES)
    common = set.intersection(*({row[1] for row in rows if row[0] == name} for name in names))
    if not common:
        return _reason(file)
    of = {name: [row for row in rows if row[0] == name and row[1] in common] for name in names}
    mean_mj = {name: float(np.mean([row[2] for row in values])) for name, values in of.items()}
    half_mj = {name: _half_width_mj(values) for name, values in of.items()}
    for name in names:
        if mean_mj[name] <= half_mj[name]:
            return (
                f"the energy of {name} cannot be distinguished from zero: {mean_mj[name]:.3g} \u00b1 "
                f"{half_mj[name]:.3g} mJ a run; measure idle power again, with no other programs running"
            )
    chooser_w = mean_mj.pop(_FEATURES) / float(np.mean([row[6] for row in of[_FEATURES]]))
    return Energies(mean_mj, {name: half_mj[name] for name in models}, chooser_w)


def _half_width_mj(rows: Sequence[_Row]) -> float:
    """Return half of the 95 % interval of the mean over photographs.

    The windows' scatter is independent from one photograph to the next, and so is `sensor_mj`, which only recordings of
    earlier versions have; the error of the idle power is the same in all. All in quadrature (JCGM 100:2008, 5.1.2).
    """
    independent_mj = math.sqrt(sum(row[3] ** 2 + row[4] ** 2 for row in rows)) / len(rows)
    return math.hypot(independent_mj, float(np.mean([row[5] for row in rows])))


def _reason(file: sqlite3.Connection) -> str:
    """Why a window failed, else why the last run metered nothing, else that it was cut off."""
    failed = file.execute("SELECT reason FROM energies WHERE mean_mj IS NULL LIMIT 1").fetchone()
    last = file.execute("SELECT unmetered FROM conditions ORDER BY id DESC LIMIT 1").fetchone()
    row = failed or last or (None,)
    return row[0] or NOT_ENDED
