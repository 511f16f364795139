"""The meter of a calibration: the sensors of this machine less its idle power, or the reason why there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jetsel.config import Power
    from jetsel.power.idle import Idle
    from jetsel.power.meter import Meter

READY_S = 60.0  # a board reads Python from a slow card


class Metering(NamedTuple):
    """What measures energy, or why nothing does.

    unmetered: why nothing is measured here. unknown: why no energy will be known in the end; it may come from a board's
    recording. doubt: what speaks against what is measured: the machine is not as it was when idle power was measured.
    idle_half_w: half of the 95 % interval of idle power.
    """

    meter: Meter | None = None
    unmetered: str | None = None
    unknown: str | None = None
    doubt: str | None = None
    idle_half_w: float = 0.0


@contextmanager
def metering(power: Power, times_from: Path | None, models: Sequence[str]) -> Iterator[Metering]:
    """Give the meter that the configuration asks for; its sampler runs until the end of the block.

    times_from: the board's recording, from which the energies of these models are taken instead. Raises
    CalibrationError where that cannot be read.
    """
    from jetsel.calibrate.record import why_not_metered

    if times_from is not None:
        unknown = why_not_metered(times_from, models)
        where = None if unknown is None else f"{times_from}: {unknown}"
        yield Metering(unmetered=f"energies were taken from {times_from}", unknown=where)
        return
    idle = _idle(power)
    if isinstance(idle, str):
        yield Metering(unmetered=idle, unknown=idle)
        return
    yield from _sampled(power, *idle)


def _sampled(power: Power, idle: Idle, doubt: str | None) -> Iterator[Metering]:
    from jetsel.power.meter import SensorMeter
    from jetsel.power.sampling.sampler import Sampler

    sampler = Sampler(power, period_ms=idle.update_period_ms)
    try:
        reason = sampler.reason if sampler.ready(READY_S) else f"the sensors did not answer within {READY_S:g} s"
        if reason is None:
            sampler.wait(time.monotonic_ns(), READY_S)  # a window needs a sample before it
            yield Metering(SensorMeter(sampler, idle), doubt=doubt, idle_half_w=idle.half_width_w)
        else:
            yield Metering(unmetered=reason, unknown=reason)
    finally:
        sampler.stop()


def _idle(power: Power) -> tuple[Idle, str | None] | str:
    """Idle power of this board in the power mode of now, and what has changed since; or why it is not known."""
    from jetsel.config import power_folder
    from jetsel.errors import CalibrationError
    from jetsel.power.finding import find
    from jetsel.power.idle import load
    from jetsel.power.machine import differences
    from jetsel.power.place import place

    found = find(power)
    found.close()
    if found.reason is not None:
        return found.reason
    here = place(power, found)
    try:
        idle = load(power_folder(power), here.board, here.power_mode, found.total_of)
    except CalibrationError as error:
        return str(error)
    changes = differences(idle.facts, here.facts) if idle.facts is not None and here.facts is not None else []
    return idle, f"since idle power was measured {'; '.join(changes)}" if changes else None
