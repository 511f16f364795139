"""The images and models that are timed and metered, and the machine's conditions meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.record.conditions import NOISY_SHARE, NoiseMonitor, TimingPlan, describe_noise
from jetsel.calibrate.record.contents import drawn_order
from jetsel.calibrate.record.cuts import CutImage, read_cut
from jetsel.calibrate.record.database import Store
from jetsel.calibrate.record.workers import Observer
from jetsel.engines import Engine, Output
from jetsel.features import WORKING_PX
from jetsel.power.integration import NO_METER
from jetsel.power.meter import OpenedMeter
from jetsel.zoo import Family

_WARM_UPS = 3  # the first runs allocate memory
_UNSETTLED_SHARE = 0.1

Missing = TypeVar("Missing")


@dataclass(frozen=True)
class EnergyPlan:
    """How energy is metered: each model on each image, until the mean over windows is known to 5 %.

    Taylor et al., section 4.2, metered every input. Here a few images are enough: a model's energy does not depend on
    the image's content, and that of preprocessing hardly does. One run is too short for a sensor, so a window repeats
    runs for `window_s`, or longer if the sensor gives too few new values. most_windows: limit if power is too noisy to
    settle. most_failures: windows in a row without an energy, after which metering stops.
    """

    photographs: int = 2
    window_s: float = 2.0
    longest_window_s: float = 30.0
    least_windows: int = 5
    most_windows: int = 10
    most_failures: int = 3


@dataclass(frozen=True)
class RecordOptions:
    """How to record. workers: threads that decode and infer. opened: the meter, if any. sysfs: as in [power].

    features_px: largest number of pixels that features read. kept: models that are recorded even if a cheaper one
    dominates them. unproven: models whose preprocessing is first compared with other ways.
    """

    limits: image.Limits = field(default_factory=lambda: image.Limits(max_bytes=64_000_000, max_pixels=50_000_000))
    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    plan: TimingPlan = field(default_factory=TimingPlan)
    opened: OpenedMeter = field(default_factory=lambda: OpenedMeter(reason=NO_METER))
    energy: EnergyPlan = field(default_factory=EnergyPlan)
    sysfs: str = "/sys"
    features_px: int = WORKING_PX
    always_recorded: frozenset[str] = frozenset()
    unproven: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Bench:
    """Runs models on recorded images to time or meter them. conditions: their id in the recording."""

    store: Store
    family: Family
    engines: Mapping[str, Engine]
    options: RecordOptions
    conditions: int
    monitor: NoiseMonitor
    observer: Observer

    def sample_images(self, count: int) -> list[tuple[int, str, str]]:
        """Return id, path and cut of up to `count` random images of this run that every model has answered.

        The order is `drawn_order`, so most of the images stay the same when images are added.
        """
        rows = self.store.connection.execute(
            "SELECT id, path, cut, sha256 FROM photographs JOIN chosen USING (sha256)"
            " WHERE (SELECT COUNT(*) FROM predictions WHERE photograph = id"
            " AND model IN (SELECT id FROM wanted)) = (SELECT COUNT(*) FROM wanted)"
        ).fetchall()
        return [row[:3] for row in sorted(rows, key=lambda row: drawn_order(row[3]))[:count]]

    def read_images(
        self, chosen: Sequence[tuple[int, str, str, Missing]]
    ) -> Iterator[tuple[int, CutImage, Missing, bool]]:
        """Yield the images that can still be read, after warming up all models, and whether a model runs on a GPU.

        chosen: id, path, cut, and what is missing. Files that are gone or damaged are skipped; a later run tries them
        again.
        """
        on_gpu: bool | None = None
        for image_id, path, cut, missing in chosen:
            try:
                prepared = read_cut(path, cut, self.options.limits, self.family.decode_px)
            except (OSError, BadImageError, ImageTooLargeError):
                continue
            if on_gpu is None:  # only engines on a GPU report device_ms
                outputs = [self.run(name, prepared) for name in self.engines for _ in range(_WARM_UPS)]
                on_gpu = any(output.device_ms is not None for output in outputs)
            yield image_id, prepared, missing, on_gpu

    def run(self, name: str, prepared: CutImage) -> Output:
        """Preprocess the image and run one model, as a request does, and return the output."""
        spec = next(model.manifest.input for model in self.family.models if model.manifest.name == name)
        return self.engines[name].infer(image.model_input(prepared.photograph, spec))

    def extract(self, prepared: CutImage) -> object:
        """Extract all features as for a request. Callers measure the time or energy, and ignore the result."""
        return prepared.extract(self.options.limits, self.options.features_px)

    def check_machine(self, on_gpu: bool) -> None:
        """Check the machine under load, and store the reasons why this run's times and energies are unreliable."""
        self.monitor.look(gpu=on_gpu)
        execute = self.store.connection.execute
        times_ms: dict[str, list[float]] = {}
        for name, median_ms in execute(
            "SELECT name, median_ms FROM timings JOIN models ON models.id = model WHERE conditions = ?",
            (self.conditions,),
        ):
            times_ms.setdefault(name, []).append(median_ms)
        reasons = [self.monitor.reason(), self.options.opened.changes, describe_noise(times_ms)]
        count, unsettled = execute(
            "SELECT COUNT(*), TOTAL(scatter_mj >= ? * mean_mj) FROM energies WHERE conditions = ?",
            (NOISY_SHARE, self.conditions),
        ).fetchone()
        if unsettled > _UNSETTLED_SHARE * count:
            settled = f"did not settle within {100 * NOISY_SHARE:g} %"
            reasons.append(f"{100 * unsettled / count:.0f} % of the energies {settled}")
        execute(
            "UPDATE conditions SET noisy = ? WHERE id = ?", ("; ".join(filter(None, reasons)) or None, self.conditions)
        )
        self.store.commit_when_due()
