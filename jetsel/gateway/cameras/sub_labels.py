"""From answers about a tracked object's images to its sub-label: votes, as Frigate's own classification counts them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from jetsel.gateway.cameras.labels import UNKNOWN, reported_label
from jetsel.wire import Answer

FEWEST_VOTES = 3
AGREEMENT = 0.6
MOST_VOTES = 16
"""Frigate 0.17, frigate/data_processing/real_time/custom_classification.py: at least three classifications, of which
60 % agree, and at most MAX_OBJECT_CLASSIFICATIONS."""


class SubLabel(NamedTuple):
    """The sub-label of an object, and the mean probability of the answers that gave it."""

    label: str
    score: float
    votes: int


class Votes:
    """The answers about one object so far."""

    def __init__(self) -> None:
        self._votes: list[tuple[str, float]] = []  # label, unknown if a promise does not cover it, and probability

    def __len__(self) -> int:
        return len(self._votes)

    def add(self, answer: Answer) -> None:
        """Take in an answer about another image of the object."""
        label = reported_label(answer).label
        self._votes.append((label, answer.probability))

    def result(self) -> SubLabel | None:
        """Return the sub-label once the votes agree on one; None if they do not, or not yet."""
        if len(self._votes) < FEWEST_VOTES:
            return None
        label, count = Counter(label for label, _ in self._votes).most_common(1)[0]
        if label == UNKNOWN or count < AGREEMENT * len(self._votes):
            return None
        scores = [score for one, score in self._votes if one == label]
        return SubLabel(label, sum(scores) / len(scores), len(self._votes))

    def why_none(self) -> str:
        """Return why there is no sub-label, as a sentence."""
        if len(self._votes) < FEWEST_VOTES:
            return f"only {len(self._votes)} images of it were answered, and {FEWEST_VOTES} are needed"
        (label, count), *_ = Counter(label for label, _ in self._votes).most_common(1)
        if label == UNKNOWN:
            return f"{count} of {len(self._votes)} answers are in doubt under the promise"
        return f"{count} of {len(self._votes)} answers agree on {label}, and {AGREEMENT:.0%} are needed"
