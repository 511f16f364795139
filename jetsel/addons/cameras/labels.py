"""Which label holds: a new one needs several answers in a row."""

from __future__ import annotations

from typing import NamedTuple

from jetsel.wire import Answer

UNKNOWN = "unknown"


class ReportedLabel(NamedTuple):
    """What an event says of an answer. id: of the class; None, which no class has, if the answer is unknown."""

    label: str
    id: str | None


def reported_label(answer: Answer) -> ReportedLabel:
    """Return the answer's label and identifier; `unknown` and None if a promise does not cover it."""
    is_unknown = answer.in_doubt and answer.wrong_at_most is not None
    return ReportedLabel(UNKNOWN, None) if is_unknown else ReportedLabel(answer.label, answer.wnid)


class Change(NamedTuple):
    """answer: the one that settled it. previous: the label before, None at first. since_s: when the new one came."""

    answer: Answer
    previous: str | None
    since_s: float


class Labels:
    """Takes in answers one after the other. stay: how many in a row a new label needs."""

    def __init__(self, stay: int) -> None:
        self._stay = stay
        self._holds: Answer | None = None
        self._next: Answer | None = None
        self._since_s, self._n = 0.0, 0

    @property
    def is_settled(self) -> bool:
        """Whether no other label is on its way: until then each frame is a vote, however little it differs."""
        return self._holds is not None and self._next is None

    def see(self, answer: Answer, now_s: float) -> Change | None:
        """Take in a frame's answer, and return the change that it completes."""
        if self._holds is not None and reported_label(answer).id == reported_label(self._holds).id:
            self._next = None
            return None
        if self._next is None or reported_label(answer).id != reported_label(self._next).id:
            self._since_s, self._n = now_s, 0
        self._next = answer
        self._n += 1
        if self._n < self._stay:
            return None
        previous = None if self._holds is None else reported_label(self._holds).label
        self._holds, self._next = self._next, None
        return Change(self._holds, previous, self._since_s)
