"""Which label holds: a new one does once it has stayed for some frames, so that a flicker is no event."""

from __future__ import annotations

from typing import NamedTuple

from jetsel.wire import Answer


class Change(NamedTuple):
    """answer: the one that settled it. previous: the label before, None at first. since_s: when the new one came."""

    answer: Answer
    previous: str | None
    since_s: float


class Labels:
    """Takes in frames one after the other. stay: how many in a row a new label needs."""

    def __init__(self, stay: int) -> None:
        self._stay = stay
        self._holds: Answer | None = None
        self._next: Answer | None = None
        self._since_s, self._n = 0.0, 0

    def see(self, answer: Answer, now_s: float) -> Change | None:
        """Take in a frame's answer, and return the change that it completes."""
        if self._holds is not None and answer.wnid == self._holds.wnid:
            self._next = None
            return None
        if self._next is None or answer.wnid != self._next.wnid:
            self._since_s, self._n = now_s, 0
        self._next = answer
        return self.see_again()

    def see_again(self) -> Change | None:
        """Take in a frame that hardly differs from the last one, so that its label is the same."""
        self._n += 1
        if self._next is None or self._n < self._stay:
            return None
        previous = None if self._holds is None else self._holds.label
        self._holds, self._next = self._next, None
        return Change(self._holds, previous, self._since_s)
