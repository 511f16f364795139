"""`jetsel calibrate --retime`: the calibration that came with the models, with the times of this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration
    from jetsel.site.family_calibrations import FamilyCalibrations


def retime(calibrations: FamilyCalibrations, tell: Callable[[str, int, int], None]) -> tuple[Calibration, int]:
    """Fit it again and install it; return it with its number. Raises CalibrationError or EngineFailedError."""
    from jetsel.base.errors import CalibrationError
    from jetsel.calibrate.retiming import Shipped
    from jetsel.calibrate.retiming import retime as fit_again
    from jetsel.policies import installed
    from jetsel.site.calibration_in_use import shipped
    from jetsel.site.families import limits_of

    family, served = calibrations.served()
    found = shipped(family)
    if found is None:
        raise CalibrationError(f"no calibration came with family {calibrations.family}: name photographs")
    config = calibrations.config
    made = fit_again(family, served, Shipped(found.usable(), found.directory), config, limits_of(config), tell)
    return made, installed.install(made, calibrations.folder, calibrations.family).number


def lines(calibration: Calibration, number: int) -> list[str]:
    """Say what was measured and what is used now."""
    from jetsel.cli.terminal import milliseconds

    times = ", ".join(f"{model} {milliseconds(ms)}" for model, ms in calibration.costs_ms.items())
    return [
        f"ms a photograph here: {times}",
        *(f"not offered: {model} {reason}" for model, reason in calibration.not_offered.items()),
        f"{calibration.default_policy['top1']} answers by default: {calibration.because}",
        f"installed as number {number}; back with: jetsel calibration rollback",
    ]


def outcome(calibration: Calibration, number: int, said: str | None) -> dict[str, Any]:
    """Return what --json prints. said: by the daemon."""
    return {
        "costs_ms": calibration.costs_ms,
        "not_offered": calibration.not_offered,
        "default_policy": calibration.default_policy,
        "verdict": calibration.because,
        "installed": number,
        "daemon": said,
    }
