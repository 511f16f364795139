"""What the kernel's drivers make of a chip's registers: the numbers that its files say.

Sources: NVIDIA's driver for JetPack 4 (Linux 4.9, drivers/staging/iio/meter/ina3221.c), which rounds to the nearest
milliampere and cuts the milliwatts off; Linux's drivers/hwmon/ina3221.c, the same without a file of power; ina238.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulator.chips import Channel

Text = Callable[[int], int]
"""What a file says at a time (CLOCK_MONOTONIC in ns)."""


def jetpack4(channel: Channel) -> dict[str, Text]:
    """Return what `in_voltageN_input` (mV), `in_currentN_input` (mA) and `in_powerN_input` (mW) say."""
    shunt_mohm = round(channel.shunt_ohm * 1e3)

    def millivolts(now_ns: int) -> int:
        return channel.bus_code(now_ns) * 8

    def milliamperes(now_ns: int) -> int:
        return _nearest(channel.shunt_code(now_ns) * 40, shunt_mohm)

    def milliwatts(now_ns: int) -> int:
        return int(millivolts(now_ns) * milliamperes(now_ns) / 1000)  # cut towards 0

    return {"voltage": millivolts, "current": milliamperes, "power": milliwatts}


def hwmon(channel: Channel) -> dict[str, Text]:
    """Return what `inN_input` (mV), `currN_input` (mA) and the shunt's `in(N+3)_input` (uV) say."""
    shunt_uohm = round(channel.shunt_ohm * 1e6)

    def millivolts(now_ns: int) -> int:
        return channel.bus_code(now_ns) * 8

    def milliamperes(now_ns: int) -> int:
        return _nearest(channel.shunt_code(now_ns) * 40_000, shunt_uohm)

    def shunt_microvolts(now_ns: int) -> int:
        return channel.shunt_code(now_ns) * 40

    return {"voltage": millivolts, "current": milliamperes, "shunt": shunt_microvolts}


def ina238(channel: Channel) -> dict[str, Text]:
    """Return what `in1_input` (mV), `in0_input` (the shunt, mV), `curr1_input` (mA) and `power1_input` (uW) say.

    The chip multiplies: its current register counts mA x 20 mOhm / shunt, its power register 0.2 mW x 20 mOhm / shunt.
    """
    shunt_uohm = round(channel.shunt_ohm * 1e6)

    def millivolts(now_ns: int) -> int:
        return channel.bus_code(now_ns) * 3125 // 1000

    def shunt_millivolts(now_ns: int) -> int:
        return int(channel.shunt_code(now_ns) * 5 / 1000)

    def current_code(now_ns: int) -> int:
        return channel.shunt_code(now_ns) // 4

    def milliamperes(now_ns: int) -> int:
        return current_code(now_ns) * 20_000 // shunt_uohm

    def microwatts(now_ns: int) -> int:
        power_code = current_code(now_ns) * channel.bus_code(now_ns) * 3125 // 200_000
        return power_code * 200 * 20_000 // shunt_uohm

    return {"voltage": millivolts, "shunt": shunt_millivolts, "current": milliamperes, "power": microwatts}


def summed(channels: Sequence[Channel]) -> dict[str, Text]:
    """Return what `in7_input` (uV) and `curr4_input` (mA) say: the sum over channels with one and the same shunt."""
    shunt_uohm = round(channels[0].shunt_ohm * 1e6)

    def shunt_microvolts(now_ns: int) -> int:
        return sum(channel.shunt_code(now_ns) for channel in channels) * 40

    def milliamperes(now_ns: int) -> int:
        return _nearest(shunt_microvolts(now_ns) * 1000, shunt_uohm)

    return {"in7_input": shunt_microvolts, "curr4_input": milliamperes}


def _nearest(dividend: int, divisor: int) -> int:
    """Divide to the nearest whole number, halves away from 0, as the kernel's DIV_ROUND_CLOSEST."""
    sign = -1 if dividend < 0 else 1
    return sign * ((abs(dividend) + divisor // 2) // divisor)
