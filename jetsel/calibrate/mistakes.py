"""Where the policy that is installed goes wrong on held-out photographs: by class, and on which photographs all do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jetsel.calibrate.findings import ClassFinding, Mistakes
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run

MOST_CLASSES = 100  # that are listed, those with the smallest shares first
MOST_PHOTOGRAPHS = 100


def mistakes(recording: Recording, runs: Mapping[str, Run], winner: str, names: Sequence[str]) -> Mistakes:
    """Return what the winner answers to each class that has photographs, and what no policy answers rightly."""
    answered, due = runs[winner].answered, recording.classes
    found = []
    for number in np.unique(due):
        said = answered[due == number]
        wrong = Counter(said[said != number].tolist()).most_common(3)
        instead = {names[other] if other >= 0 else "refused": count for other, count in wrong}
        found.append(ClassFinding(names[number], len(said), float((said == number).mean()), instead))
    found.sort(key=lambda one: (one.right, -one.photographs, one.name))
    hopeless = np.all([run.answered != due for run in runs.values()], axis=0)
    first: list[int] = np.flatnonzero(hopeless)[:MOST_PHOTOGRAPHS].tolist()
    paths = [(recording.paths[row] if recording.paths else f"photograph {row}", names[due[row]]) for row in first]
    return Mistakes(winner, found[:MOST_CLASSES], int(hopeless.sum()), paths)
