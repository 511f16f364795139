"""Where policies go wrong on held-out images: the winner by class, and the images that show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.findings import ClassFinding, Guess, ImageFinding, ImageSample, Mistakes
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run

REFUSED = "refused"
MOST_CLASSES = 100  # that are listed, those with the smallest shares first
MOST_IMAGES = 48  # that a sample shows


def mistakes(
    recording: Recording,
    runs: Mapping[str, Run],
    winner: str,
    names: Sequence[str],
    temperatures: Mapping[str, float],
) -> Mistakes:
    """Return what the winner answers to each class that has images, and the images on which every policy is wrong."""
    answered, due = runs[winner].answered, recording.classes
    found = []
    for number in np.unique(due):
        said = answered[due == number]
        wrong = Counter(said[said != number].tolist()).most_common(3)
        instead = {names[other] if other >= 0 else REFUSED: count for other, count in wrong}
        found.append(ClassFinding(names[number], len(said), float((said == number).mean()), instead))
    found.sort(key=lambda one: (one.right, -one.photographs, one.name))
    hopeless = np.all([run.answered != due for run in runs.values()], axis=0)
    return Mistakes(winner, found[:MOST_CLASSES], _sample(recording, hopeless, runs, names, temperatures))


def differing(
    recording: Recording, runs: Mapping[str, Run], names: Sequence[str], temperatures: Mapping[str, float]
) -> ImageSample:
    """Return the images on which policies that choose give different answers; single models differ on too many."""
    answered = np.stack([run.answered for run in _choosing(runs).values()])
    return _sample(recording, (answered != answered[0]).any(axis=0), runs, names, temperatures)


def _sample(
    recording: Recording,
    are_meant: NDArray[np.bool_],
    runs: Mapping[str, Run],
    names: Sequence[str],
    temperatures: Mapping[str, float],
) -> ImageSample:
    """Describe up to 48 of the images that are meant, (n,), evenly spread over the recording and thus its classes."""
    rows = np.flatnonzero(are_meant)
    spread = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_IMAGES)).astype(np.int64)].tolist()
    some = recording.take(np.array(spread, np.int64))
    first, confidence = some.logits.argmax(axis=2), some.confidences("top1", temperatures)
    images = []
    for place, row in enumerate(spread):
        guesses = {
            model: Guess(names[first[column, place]], float(confidence[place, column]))
            for column, model in enumerate(recording.models)
        }
        given = {name: int(run.answered[row]) for name, run in _choosing(runs).items()}
        answers = {name: names[number] if number >= 0 else REFUSED for name, number in given.items()}
        path = recording.paths[row] if recording.paths else f"image {row}"
        images.append(ImageFinding(path, names[recording.classes[row]], guesses, answers))
    return ImageSample(len(rows), images)


def _choosing(runs: Mapping[str, Run]) -> dict[str, Run]:
    """Those of policies that choose between models."""
    return {name: run for name, run in runs.items() if not name.startswith("single:")}
