"""Why figures that were taken under some facts do not hold under others, in words."""

from __future__ import annotations

from collections.abc import Iterator

from jetsel.power.machine.facts import Clock, Facts, Known

CLOCK_TOLERANCE = 0.01  # of the highest allowed clock: what rounding between drivers leaves


def differences(before: Facts, now: Facts) -> list[str]:
    """Return how the board is set otherwise than it was: release, power mode, cores, clocks.

    What is unknown on either side is no difference. `before` may have been read from JSON.
    """
    return [
        f"{what} changed from {was!r} to {is_now!r}"
        for what, was, is_now in (
            ("board", before.board.value, now.board.value),
            ("L4T", before.l4t.value, now.l4t.value),
            ("power mode", before.power_mode.value, now.power_mode.value),
            ("running CPU cores", before.cores.value, now.cores.value),
            ("jetson_clocks", before.jetson_clocks.value, now.jetson_clocks.value),
        )
        if was is not None and is_now is not None and was != is_now
    ] + [
        *_clocks(before.cpu_clocks, now.cpu_clocks),
        *_clocks(before.gpu_clocks, now.gpu_clocks),
    ]


def throttled(before: Facts | None, now: Facts) -> list[str]:
    """Return what slows the board down now, and which alarms went off since `before`, a look shortly ago.

    None: there was no such look.
    """
    counts = now.alarms if before is None else before.alarms
    return now.slowed + [
        f"{name}, an alarm of over-current or low voltage, counted {count - counts[name]} more"
        for name, count in now.alarms.items()
        if count > counts.get(name, count)
    ]


def _clocks(before: Known[list[Clock]], now: Known[list[Clock]]) -> Iterator[str]:
    earlier = {clock.name: clock for clock in before.value or ()}
    for clock in now.value or ():
        was = earlier.get(clock.name)
        if was is None:  # its cores did not run: that is told
            continue
        if abs(clock.highest_mhz - was.highest_mhz) > CLOCK_TOLERANCE * was.highest_mhz:
            from_to = f"from {was.highest_mhz:.0f} to {clock.highest_mhz:.0f} MHz"
            yield f"highest allowed clock of {clock.name} changed {from_to}"
        if was.governor and clock.governor and was.governor != clock.governor:
            yield f"governor of {clock.name} changed from {was.governor!r} to {clock.governor!r}"
