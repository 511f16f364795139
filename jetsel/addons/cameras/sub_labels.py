"""A tracked object of Frigate's, and its votes: from answers to a sub-label, as Frigate's own classification counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from jetsel.addons.cameras.labels import ReportedLabel, reported_label
from jetsel.wire import Answer

FEWEST_VOTES = 3
AGREEMENT = 0.6
MOST_VOTES = 16
"""Frigate 0.17, frigate/data_processing/real_time/custom_classification.py: at least three classifications, of which
60 % agree, and at most MAX_OBJECT_CLASSIFICATIONS."""
AGAIN_S = 1.0  # from one question about an object to the next
NOTHING = "none"
"""Frigate's class for objects that get no sub-label (its documentation, "Object Classification")."""


class SubLabel(NamedTuple):
    """The sub-label of an object, and the mean probability of the answers that gave it."""

    label: str
    score: float
    votes: int


class Votes:
    """The answers about one object so far."""

    def __init__(self) -> None:
        self._votes: list[tuple[ReportedLabel, float]] = []  # without an id if in doubt; and the probability

    def __len__(self) -> int:
        return len(self._votes)

    def add(self, answer: Answer) -> None:
        """Take in an answer about another image of the object."""
        self._votes.append((reported_label(answer), answer.probability))

    def result(self) -> SubLabel | None:
        """Return the sub-label once the votes agree on one; None if they do not, or not yet."""
        if self.why_none() is not None:
            return None
        best, _ = self._leading()
        scores = [score for label, score in self._votes if label == best]
        return SubLabel(_first_name(best), sum(scores) / len(scores), len(self._votes))

    def why_none(self) -> str | None:
        """Return why there is no sub-label, as a sentence; None if there is one."""
        total = len(self._votes)
        if total < FEWEST_VOTES:
            return f"only {total} images of it were answered, and {FEWEST_VOTES} are needed"
        best, count = self._leading()
        if best.id is None:
            return f"{count} of {total} answers are in doubt under the promise"
        if count < AGREEMENT * total:
            return f"{count} of {total} answers agree on {best.label}, and {AGREEMENT:.0%} are needed"
        if best.label.casefold() == NOTHING:
            return f"{count} of {total} answers are {best.label}, the class for objects that get no sub-label"
        return None

    def _leading(self) -> tuple[ReportedLabel, int]:
        return Counter(label for label, _ in self._votes).most_common(1)[0]


def _first_name(label: ReportedLabel) -> str:
    """Return the first synonym; an owner's class, whose name is its identifier, may have commas in it."""
    return label.label if label.label == label.id else label.label.split(",")[0]


@dataclass
class Tracked:
    """One object of Frigate's. Times are of the monotonic clock."""

    id: str
    camera: str
    label: str
    family: str
    seen_s: float
    began_s: float
    votes: Votes = field(default_factory=Votes)
    due_s: float = 0.0
    ended_s: float | None = None
    is_busy: bool = False
    last_image: bytes = b""  # its hash: the same image is no further vote
    problem: str = ""
    pause_s: float = AGAIN_S
    result: SubLabel | None = None
    is_final: bool = False  # all that can be asked about it was, after its end
