"""Find images whose label the owner should check: the models or other images contradict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import DoubtfulFindings, ImageFinding, ImageSample
from jetsel.calibrate.record.recording import Recording
from jetsel.premodel.cascades import log_softmax

MOST_SHOWN = 12  # images of each kind of doubt
CONTRADICTED = 0.05
"""Limit of the label's mean probability over the models; below it, the models contradict the label. Northcutt et al.
(Confident learning, JAIR 2021) rank by this probability; at 5 %, most of the first images listed are mislabelled."""
SAME = 0.95  # cosine of two embeddings: images of the same object, or a resized copy
FAR = 3.5
"""Limit of the robust standard score of an image's distance from its class's centre, by the median and the median
absolute deviation (Iglewicz and Hoaglin, 1993, who advise 3.5)."""
_ROBUST = 1.4826  # standard deviation of a normal distribution / its median absolute deviation
_FEWEST = 5  # images that a class needs for a centre and a spread
_BLOCK = 1024  # images whose similarities to all others are held in memory at a time


def find_doubtful(recording: Recording, names: Sequence[str], temperatures: Mapping[str, float]) -> DoubtfulFindings:
    """Return the images whose labels the owner should check. names: of the classes. temperatures: by model."""
    contradicted = _contradicted(recording, names, temperatures)
    if recording.embeddings is None:
        nothing = ImageSample(0, [])
        return DoubtfulFindings(contradicted, nothing, nothing, "the cheapest model has no embedding")
    vectors = recording.embeddings.astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return DoubtfulFindings(contradicted, _resembling(recording, vectors, names), _outliers(recording, vectors, names))


def _contradicted(recording: Recording, names: Sequence[str], temperatures: Mapping[str, float]) -> ImageSample:
    """Return the images whose label is improbable by the mean over all models, the least probable first."""
    rows = np.arange(len(recording.classes))
    mean = np.zeros((len(rows), recording.logits.shape[2]), np.float32)
    for model, logits in zip(recording.models, recording.logits, strict=True):
        mean += np.exp(log_softmax(logits.astype(np.float32), temperatures[model])) / len(recording.models)
    of_label, guesses = mean[rows, recording.classes], mean.argmax(axis=1)
    contradicted = np.flatnonzero((of_label < CONTRADICTED) & (guesses != recording.classes) & (mean.max(axis=1) > 0.5))
    ranked = contradicted[np.argsort(of_label[contradicted], kind="stable")]
    template = "the models say {guess} ({most:.0%}), and its label has {least:.1%}"
    reasons = {
        int(row): template.format(guess=names[guesses[row]], most=mean[row].max(), least=of_label[row])
        for row in ranked[:MOST_SHOWN]
    }
    return _sample(recording, names, len(ranked), reasons)


def _resembling(recording: Recording, vectors: NDArray[np.float32], names: Sequence[str]) -> ImageSample:
    """Return the images that are nearly the same as one of another class, the most similar pair first, one of each.

    vectors: embeddings of length 1, (n, width).
    """
    classes, pairs = recording.classes, []
    for start in range(0, len(classes), _BLOCK):
        similarities = vectors[start : start + _BLOCK] @ vectors.T
        similarities[classes[start : start + _BLOCK, None] == classes[None, :]] = -1.0
        most_similar = similarities.argmax(axis=1)
        similarity = similarities[np.arange(len(most_similar)), most_similar]
        pairs += [(float(similarity[i]), start + i, int(most_similar[i])) for i in np.flatnonzero(similarity >= SAME)]
    similarity_of_pair: dict[tuple[int, int], float] = {}
    for likeness, row, other_row in sorted(pairs, reverse=True):
        similarity_of_pair.setdefault((min(row, other_row), max(row, other_row)), likeness)
    reasons = {
        row: f"nearly the same as {recording.path(other_row)}, labelled {names[classes[other_row]]}"
        for row, other_row in list(similarity_of_pair)[:MOST_SHOWN]
    }
    return _sample(recording, names, len(similarity_of_pair), reasons)


def _outliers(recording: Recording, vectors: NDArray[np.float32], names: Sequence[str]) -> ImageSample:
    """Return the images that are far from their class's centre by robust standard score, the farthest first."""
    classes = recording.classes
    scores = np.zeros(len(classes), np.float32)
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        if len(rows) < _FEWEST:
            continue
        distances = 1 - vectors[rows] @ _middle(vectors[rows])
        spread = _ROBUST * np.median(np.abs(distances - np.median(distances)))
        scores[rows] = (distances - np.median(distances)) / max(float(spread), 1e-6)
    ranked = np.argsort(-scores, kind="stable")
    ranked = ranked[scores[ranked] > FAR]
    template = "unlike the other images of {name}: {score:.1f} times their usual deviation"
    reasons = {int(row): template.format(name=names[classes[row]], score=scores[row]) for row in ranked[:MOST_SHOWN]}
    return _sample(recording, names, len(ranked), reasons)


def _middle(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the median of (n, width) vectors, scaled to length 1; a few outliers do not move it."""
    median = np.median(vectors, axis=0)
    direction: NDArray[np.float32] = median / max(float(np.linalg.norm(median)), 1e-12)
    return direction


def _sample(recording: Recording, names: Sequence[str], total: int, reasons: Mapping[int, str]) -> ImageSample:
    """Return the sample of `total` images that describes those in `reasons`: row -> why to check it."""
    pairs = reasons.items()
    images = [ImageFinding(recording.path(row), names[recording.classes[row]], why=reason) for row, reason in pairs]
    return ImageSample(total, images)
