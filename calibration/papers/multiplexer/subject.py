"""One family with a multiplexer of its own, trained and recorded as an owner would: what every table is about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from calibration.candidates import recorded
from jetsel.calibrate.record import Plan
from jetsel.calibrate.recording import Recording
from jetsel.cli import family_calibrations
from jetsel.cli.family_calibrations import FamilyCalibrations
from jetsel.cli.joint_training import Jointly
from jetsel.cli.multiplexing import Asked, Found, train
from jetsel.cli.progress import Output

SEED = 2020
EPOCHS, MINUTES = 12, 40.0
TIMED = Plan(photographs=60)


@dataclass(frozen=True)
class Subject:
    """A family in a folder that nobody else uses. fit, test: folders or CSVs, to be fitted on and to be judged on.

    names: the models to choose from, all where there are none. joint: what models are trained jointly on.
    """

    family: str
    folder: Path
    fit: Path
    test: Path
    names: tuple[str, ...] = ()
    joint: Path | None = None
    contrast: float = 0.0

    def prepare(self, models: Path | None) -> None:
        """Make the folder, with a copy of the models where they are not those that ship."""
        self.folder.mkdir(parents=True, exist_ok=True)
        own = self.folder / "models"
        if models is not None and not own.exists():
            shutil.copytree(models, own)
        own.mkdir(exist_ok=True)
        lines = ["[models]", f'paths = ["{own.resolve()}"]', f'calibrations = "{(self.folder / "own").resolve()}"']
        self.config.write_text("\n".join([*lines, ""]), encoding="utf-8")
        os.environ["STATE_DIRECTORY"] = str((self.folder / "state").resolve())

    @property
    def config(self) -> Path:
        """The configuration that all commands go by."""
        return self.folder / "jetsel.toml"

    def calibrations(self) -> FamilyCalibrations:
        """The family as it is now."""
        return family_calibrations.find(self.config, self.family)

    def trained(self, loss: Literal["right", "ensemble"]) -> Found:
        """Train the multiplexer; it takes the place of the one that is there."""
        with Output(quiet=True) as output:
            return train(self.calibrations, self.asked(loss), output)

    def asked(self, loss: Literal["right", "ensemble"]) -> Asked:
        """What `jetsel train-multiplexer` is asked for."""
        return Asked(self.fit, None, self.names, loss, "ms", None, self.jointly, SEED)

    @property
    def jointly(self) -> Jointly | None:
        """How its models are trained together, None where they stay as they are."""
        return None if self.joint is None else Jointly(self.joint, self.contrast, EPOCHS, 60 * MINUTES, SEED)

    def recorded(self, photos: Path, names: Sequence[str], file: str) -> Recording:
        """Record some of the models and the multiplexer, and time all of them by turns in one run; read it back."""
        family, served = self.calibrations().served()
        some = replace(family, models=tuple(served[name] for name in served if name in names))
        return recorded(some, photos, self.folder / f"{file}.sqlite", TIMED)


def with_times_of(fit: Recording, test: Recording) -> Recording:
    """Return a recording with the times of another."""
    mux = None
    if test.multiplexer is not None and fit.multiplexer is not None:
        mux = replace(test.multiplexer, cost_ms=fit.multiplexer.cost_ms)
    return replace(test, costs_ms=fit.costs_ms, multiplexer=mux)
