"""From answers to a label: a camera's new label needs several in a row, a Frigate sub-label most of the votes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from jetsel.wire import Answer

UNKNOWN = "unknown"
FEWEST_VOTES = 3
AGREEMENT = 0.6
MOST_VOTES = 16
"""Frigate 0.17, frigate/data_processing/real_time/custom_classification.py: at least three classifications, of which 60
% agree, and at most MAX_OBJECT_CLASSIFICATIONS."""
NOTHING = "none"  # Frigate's class for objects that get no sub-label (its documentation, "Object Classification")


class ReportedLabel(NamedTuple):
    """Label of an answer in events. id: of the class; None, which no class has, for `unknown`."""

    label: str
    id: str | None


def reported_label(answer: Answer) -> ReportedLabel:
    """Return the answer's label and identifier; `unknown`, None if it exceeds the error rate that requests allow."""
    is_unknown = answer.in_doubt and answer.wrong_at_most is not None
    return ReportedLabel(UNKNOWN, None) if is_unknown else ReportedLabel(answer.label, answer.wnid)


class LabelChange(NamedTuple):
    """A camera's new label. answer: its last vote. previous: None at first. since_s: time of its first vote."""

    answer: Answer
    previous: str | None
    since_s: float


class LabelTracker:
    """Follows the label from answer to answer. stay: successive answers that a new label needs."""

    def __init__(self, stay: int) -> None:
        self._stay = stay
        self._current: Answer | None = None
        self._candidate: Answer | None = None
        self._since_s, self._n_candidate = 0.0, 0

    @property
    def is_settled(self) -> bool:
        """Whether a label is reported and no other one collects votes; if not, every frame is needed as a vote."""
        return self._current is not None and self._candidate is None

    def add_answer(self, answer: Answer, now_s: float) -> LabelChange | None:
        """Process a frame's answer; return the change that it completes, else None."""
        if self._current is not None and reported_label(answer).id == reported_label(self._current).id:
            self._candidate = None
            return None
        if self._candidate is None or reported_label(answer).id != reported_label(self._candidate).id:
            self._since_s, self._n_candidate = now_s, 0
        self._candidate = answer
        self._n_candidate += 1
        if self._n_candidate < self._stay:
            return None
        previous = None if self._current is None else reported_label(self._current).label
        self._current, self._candidate = self._candidate, None
        return LabelChange(self._current, previous, self._since_s)


class SubLabel(NamedTuple):
    """The sub-label of a tracked object, and the mean probability of the answers that gave it."""

    label: str
    score: float
    votes: int


class Votes:
    """The answers about one tracked object, counted as in Frigate's own classification."""

    def __init__(self) -> None:
        self._votes: list[tuple[ReportedLabel, float]] = []  # label (id None: in doubt) and probability

    def __len__(self) -> int:
        return len(self._votes)

    def add(self, answer: Answer) -> None:
        """Add an answer about another image of the object."""
        self._votes.append((reported_label(answer), answer.probability))

    def result(self) -> SubLabel | None:
        """Return the sub-label if the votes agree on one, else None."""
        if self.why_none() is not None:
            return None
        best, _ = self._most_frequent()
        scores = [score for label, score in self._votes if label == best]
        name = best.label if best.label == best.id else best.label.split(",")[0]  # an owner's class may contain commas
        return SubLabel(name, sum(scores) / len(scores), len(self._votes))

    def why_none(self) -> str | None:
        """Return why there is no sub-label, in a sentence; None if there is one."""
        total = len(self._votes)
        if total < FEWEST_VOTES:
            return f"only {total} images of it were answered, and {FEWEST_VOTES} are needed"
        best, count = self._most_frequent()
        if best.id is None:
            return f"{count} of {total} answers are in doubt under the promise"
        if count < AGREEMENT * total:
            return f"{count} of {total} answers agree on {best.label}, and {AGREEMENT:.0%} are needed"
        if best.label.casefold() == NOTHING:
            return f"{count} of {total} answers are {best.label}, the class for objects that get no sub-label"
        return None

    def _most_frequent(self) -> tuple[ReportedLabel, int]:
        return Counter(label for label, _ in self._votes).most_common(1)[0]
