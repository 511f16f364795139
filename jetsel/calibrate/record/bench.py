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

Missing = TypeVar("Missing")  # what is to be measured on an image


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
    """How to record."""

    limits: image.Limits = field(default_factory=lambda: image.Limits(max_bytes=64_000_000, max_pixels=50_000_000))
    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))  # threads that decode and infer
    plan: TimingPlan = field(default_factory=TimingPlan)  # for timing
    opened: OpenedMeter = field(default_factory=lambda: OpenedMeter(reason=NO_METER))  # the meter, or why there is none
    energy: EnergyPlan = field(default_factory=EnergyPlan)  # for metering
    sysfs: str = "/sys"  # root of the kernel's files about power and clocks
    features_px: int = WORKING_PX  # largest number of pixels that features read
    always_recorded: frozenset[str] = frozenset()  # models that are kept even if a cheaper one dominates them
    unproven: frozenset[str] = frozenset()  # models whose preprocessing is compared with other kinds


@dataclass(frozen=True)
class Bench:
    """Runs models on recorded images to time or meter them."""

    store: Store
    family: Family
    engines: Mapping[str, Engine]
    options: RecordOptions
    conditions: int  # id of this run's conditions in the recording
    monitor: NoiseMonitor  # notices load and low clocks
    observer: Observer  # receives progress, and may stop the run

    def sample_images(self, count: int) -> list[tuple[int, str, str]]:
        """Return id, path and cut (`Cut.text`) of up to `count` random images that every model has answered.

        Most of the images stay the same when images are added, see `drawn_order`.
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
        """Yield id, decoded image, what is to be measured, and whether a model runs on a GPU, after warming up.

        chosen: id, path, cut and what is to be measured. Files that are gone or damaged are skipped; a later run tries
        them again.
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
        """Check the machine while it is busy, and store why the times and energies of this run are unreliable."""
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
