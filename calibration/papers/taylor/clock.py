"""What models and features take: processor time of one thread, which other work on the machine changes little."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path

import cv2
import msgspec
import numpy as np

from calibration.starter.calibrate import LIMITS
from jetsel import image
from jetsel.calibrate.fit.features import decode_sample
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.calibrate.record.recording import Recording
from jetsel.features import PAPER_NAMES, WORKING_PX
from jetsel.zoo import Family

REPEATS = 5


class Clock:
    """The times of one family, of the recording's images; they are taken once, and kept in a file."""

    def __init__(self, family: Family, recording: Recording, file: Path) -> None:
        cv2.setNumThreads(1)
        self._shown = decode_sample(recording.paths, family.decode_px, LIMITS)
        self._family, self._file, self.factor = family, file, 1.0
        self._known: dict[str, float] = msgspec.json.decode(file.read_bytes()) if file.exists() else {}

    def slower(self, factor: float) -> Clock:
        """Return one for a machine whose features take so many times as long."""
        other = copy(self)
        other.factor = factor
        return other

    def models_ms(self) -> Mapping[str, float]:
        """Return what each model takes of one image, its input included."""
        specs = {model.manifest.name: model.manifest.input for model in self._family.models}
        if not set(specs) <= set(self._known):
            with loaded_models(self._family) as engines:
                for name, spec in specs.items():
                    engine = engines[name]
                    runs = [
                        lambda one=photograph, spec=spec, engine=engine: engine.infer(image.model_input(one, spec))
                        for photograph, *_ in self._shown
                    ]
                    self._known[name] = _mean_ms(runs)
            self._keep()
        return {name: self._known[name] for name in specs}

    def __call__(self, names: tuple[str, ...] = PAPER_NAMES) -> float:
        """Return what extracting these features of one image takes."""
        key = ",".join(names)
        if key not in self._known:
            runs = [lambda one=one: one.extract(LIMITS, WORKING_PX, names) for one in self._shown]
            self._known[key] = _mean_ms(runs)
            self._keep()
        return self.factor * self._known[key]

    def _keep(self) -> None:
        self._file.write_bytes(msgspec.json.encode(self._known))


def _mean_ms(runs: list[Callable[[], object]]) -> float:
    """The mean over images of the shortest of some repeats, after one that warms up."""
    best = np.full(len(runs), np.inf)
    runs[0]()
    for _ in range(REPEATS):
        for place, run in enumerate(runs):
            began = time.thread_time()
            run()
            best[place] = min(best[place], (time.thread_time() - began) * 1e3)
    return float(best.mean())
