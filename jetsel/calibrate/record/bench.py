"""What is timed and metered: which images, which models, and the conditions of the machine meanwhile."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.record.conditions import NoiseMonitor
from jetsel.calibrate.record.contents import drawn_order
from jetsel.calibrate.record.cuts import read_shown
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.durations import NOISY_SHARE, TimingPlan, noise
from jetsel.calibrate.record.workers import Stop, Tell
from jetsel.engines import Engine, Output
from jetsel.features import WORKING_PX
from jetsel.power.integration import NO_METER
from jetsel.power.meter import OpenedMeter
from jetsel.zoo import Family

# The 97.5 % quantiles of Student's t with 1 to 30 degrees of freedom.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def half_width(values: Sequence[float]) -> float:
    """Return half the 95 % confidence interval of their mean (Student 1908); infinite below two values."""
    count = len(values)
    return t_quantile(count - 1) * statistics.stdev(values) / math.sqrt(count) if count > 1 else math.inf


def is_settled(values: Sequence[float], least: int, share: float) -> bool:
    """Whether there are enough, and half of the interval is less than this share of their mean."""
    return len(values) >= least and half_width(values) < share * statistics.fmean(values)


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with `freedom` >= 1 degrees of freedom, within 0.001."""
    return _T_975[freedom - 1] if freedom <= len(_T_975) else 1.960 + 2.45 / freedom


_WARM_UPS = 3  # the first runs allocate
_UNSETTLED_SHARE = 0.1

Missing = TypeVar("Missing")


@dataclass(frozen=True)
class EnergyPlan:
    """How energy is metered: each model on each photograph, until the mean of its windows is known to 5 %.

    Taylor et al., section 4.2, did so for every input. Here a few photographs are enough: what a network takes does not
    depend on what it sees, and making its input of a photograph hardly does. A run is too short for a sensor: a window
    is runs one after the other for at least so long, and longer if the sensor has too few new values in that time.
    most_windows: if power is too restless to settle; most_failures: windows in a row without an energy, until the
    sensor is given up.
    """

    photographs: int = 2
    window_s: float = 2.0
    longest_window_s: float = 30.0
    least_windows: int = 5
    most_windows: int = 10
    most_failures: int = 3


@dataclass(frozen=True)
class RecordOptions:
    """How to record. workers: threads that decode and infer; opened: the meter, if any; sysfs: as [power] has it.

    features_px: the pixels of a photograph that features see at most. kept: models that are
    recorded to the end, even if a cheaper one makes them superfluous. unproven: models whose preprocessing is compared
    with other ways first.
    """

    limits: image.Limits = field(default_factory=lambda: image.Limits(max_bytes=64_000_000, max_pixels=50_000_000))
    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    plan: TimingPlan = field(default_factory=TimingPlan)
    opened: OpenedMeter = field(default_factory=lambda: OpenedMeter(reason=NO_METER))
    energy: EnergyPlan = field(default_factory=EnergyPlan)
    sysfs: str = "/sys"
    features_px: int = WORKING_PX
    kept: frozenset[str] = frozenset()
    unproven: frozenset[str] = frozenset()


class RecordedCut(NamedTuple):
    """Where an image was read, and what of it was shown: see `Cut.text`."""

    path: str
    cut: str


class ShownImage(NamedTuple):
    """A photograph that models are shown, and what extracts all its features as a request would."""

    photograph: image.Photograph
    extract: Callable[[], NDArray[np.float32]]


@dataclass(frozen=True)
class Bench:
    """What is timed or metered, how, and under which conditions, by their id in the recording."""

    store: Store
    family: Family
    engines: Mapping[str, Engine]
    options: RecordOptions
    conditions: int
    watch: NoiseMonitor
    tell: Tell | None
    stop: Stop

    def photographs(self, count: int) -> list[tuple[int, RecordedCut]]:
        """Return id, path and cut of this number of random images.

        They are of those that the run was given and every model has seen.
        They are drawn, see drawn_order: most of them are the same when images are added.
        """
        rows = self.store.connection.execute(
            "SELECT id, path, sha256, cut FROM photographs JOIN chosen USING (sha256)"
            " WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = id"
            " AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
        ).fetchall()
        rows.sort(key=lambda row: drawn_order(row[2]))
        return [(photograph, RecordedCut(path, cut)) for photograph, path, _, cut in rows[:count]]

    def shown(
        self, chosen: Sequence[tuple[int, RecordedCut, Missing]]
    ) -> Iterator[tuple[int, ShownImage, Missing, bool]]:
        """Yield those photographs that can be read by now, and whether a model runs on a GPU.

        All models are warm then. What is gone or was damaged meanwhile is left to a later run.
        """
        on_gpu: bool | None = None
        for photograph, where, missing in chosen:
            try:
                shown = read_shown(*where, self.options.limits, self.family.decode_px)
            except (OSError, BadImageError, ImageTooLargeError):
                continue
            if on_gpu is None:  # a device has a clock of its own
                outputs = [self.run(name, shown.photograph) for name in self.engines for _ in range(_WARM_UPS)]
                on_gpu = any(output.device_ms is not None for output in outputs)
            features = partial(shown.extract, self.options.limits, self.options.features_px)
            yield photograph, ShownImage(shown.photograph, features), missing, on_gpu

    def run(self, name: str, photograph: image.Photograph) -> Output:
        """Let one model answer, its input made anew: that is part of what a request pays."""
        spec = next(model.manifest.input for model in self.family.models if model.manifest.name == name)
        return self.engines[name].infer(image.model_input(photograph, spec))

    def look(self, on_gpu: bool) -> None:
        """Look at the machine while it is busy, and note why this run's times and energies cannot be trusted."""
        self.watch.look(gpu=on_gpu)
        execute = self.store.connection.execute
        times_ms: dict[str, list[float]] = {}
        for name, median_ms in execute(
            "SELECT name, median_ms FROM timings JOIN models ON models.id = model WHERE conditions = ?",
            (self.conditions,),
        ):
            times_ms.setdefault(name, []).append(median_ms)
        reasons = [reason for reason in (self.watch.reason(), self.options.opened.doubt, noise(times_ms)) if reason]
        count, restless = execute(
            "SELECT COUNT(*), TOTAL(scatter_mj >= ? * mean_mj) FROM energies WHERE conditions = ?",
            (NOISY_SHARE, self.conditions),
        ).fetchone()
        if restless > _UNSETTLED_SHARE * count:
            settled = f"did not settle within {100 * NOISY_SHARE:g} %"
            reasons.append(f"{100 * restless / count:.0f} % of the energies {settled}")
        execute("UPDATE conditions SET noisy = ? WHERE id = ?", ("; ".join(reasons) or None, self.conditions))
        self.store.commit_when_due()
