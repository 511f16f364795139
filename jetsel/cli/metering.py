"""The meter of a calibration: the sensors of this machine less its idle power, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jetsel.config import Power
    from jetsel.power.meter import Opened


class Metering(NamedTuple):
    """What measures energy here, and why no energy will be known in the end; it may come from a board's recording."""

    here: Opened
    unknown: str | None = None


@contextmanager
def metering(power: Power, times_from: Path | None, models: Sequence[str]) -> Iterator[Metering]:
    """Give the meter that the configuration asks for; its sampler runs until the end of the block.

    times_from: the board's recording, from which the energies of these models are taken instead. Raises
    CalibrationError where that cannot be read.
    """
    from jetsel.calibrate.record import why_not_metered
    from jetsel.config import power_folder
    from jetsel.power.meter import Opened, open_meter

    if times_from is not None:
        unknown = why_not_metered(times_from, models)
        where = None if unknown is None else f"{times_from}: {unknown}"
        yield Metering(Opened(reason=f"energies were taken from {times_from}"), where)
        return
    with open_meter(power, power_folder(power)) as opened:
        yield Metering(opened, opened.reason)
