"""The most answers that are right and in time which any chooser could give, were it to know all that comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def most_in_time(due_s: Sequence[float], takes_s: Sequence[float], limit_s: float, workers: int) -> int:
    """Return how many requests can be answered within the limit, each taking so long; infinite: it cannot be right.

    The workers count as one that is as many times as fast, and may divide a request: no real ones do better. Requests
    with the same limit are best answered in the order in which they come, and of each that would be late, whichever
    is left out that makes room soonest (Kise, Ibaraki and Mine, "A solvable case of the one-machine scheduling problem
    with ready and due times", Operations Research 26(1), 1978).
    """
    begins, takes, released = (np.empty(len(due_s)) for _ in range(3))
    count, first = 0, 0  # requests that are answered; the first of those since the worker was last idle
    end_s = 0.0
    for at_s, taken_s in zip(due_s, takes_s, strict=True):
        if not np.isfinite(taken_s):
            continue
        if at_s >= end_s:
            first = count
        begins[count], takes[count], released[count] = max(at_s, end_s), taken_s / workers, at_s
        before_s, end_s = end_s, begins[count] + takes[count]
        count += 1
        if end_s <= at_s + limit_s:
            continue
        earlier = _earlier(begins[first:count], takes[first:count], released[first:count])
        place = int(earlier.argmax())
        if end_s - earlier[place] >= before_s:
            count, end_s = count - 1, before_s
            continue
        end_s -= earlier[place]
        gone = first + place
        slack = np.minimum.accumulate(begins[gone + 1 : count] - released[gone + 1 : count])
        begins[gone + 1 : count] -= np.minimum(takes[gone], slack)
        for kept in (begins, takes, released):
            kept[gone : count - 1] = kept[gone + 1 : count]
        count -= 1
    return count


def _earlier(
    begins: NDArray[np.float64], takes: NDArray[np.float64], released: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much earlier the last request ends if each of the others is left out; 0 for the last itself."""
    slack = np.minimum.accumulate((begins - released)[::-1])[::-1]
    return np.append(np.minimum(takes[:-1], slack[1:]), 0.0)
