"""What the chips' registers hold at known voltages, as their data sheets have it."""

import ctypes
import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Channel(NamedTuple):
    """The voltages that one channel of an INA3221 sees."""

    bus_mv: int
    shunt_uv: int


# A bus of 18,992 mV and 4,000 uV over 5 mOhm, which is 800 mA; 5,000 mV and 1,240 uV over 10 mOhm, 124 mA; 3,304 mV and
# 9,520 uV over 2 mOhm, 4,760 mA. Then the first gives 800 mA back.
BUSY = Channel(18_992, 4_000), Channel(5_000, 1_240), Channel(3_304, 9_520)
BACK = Channel(18_992, -4_000), *BUSY[1:]
SHUNTS_UOHM = 5_000, 10_000, 2_000


def ina3221(channels: Sequence[Channel]) -> dict[int, int]:
    """Return registers 1 to 6, 13 and 15 of an INA3221 with three channels (TI SBOS576, register maps).

    A bit is 8 mV of the bus in registers 2, 4, 6 and 40 uV of the shunt in 1, 3, 5, all shifted left by 3; 13 is the
    sum of the shunts, 40 uV a bit shifted left by 1. Bit 0 of 15 says that a conversion is ready: a real chip clears it
    when it is read, the stub holds it. Raises ValueError for a voltage between two steps.
    """
    words = {}
    for index, channel in enumerate(channels):
        words[2 * index + 1] = _steps(channel.shunt_uv, 40) << 3 & 0xFFFF
        words[2 * index + 2] = _steps(channel.bus_mv, 8) << 3
    words[13] = _steps(sum(channel.shunt_uv for channel in channels), 40) << 1
    words[15] = 0x7001  # all three channels take part in the sum
    return words


def ina238(bus_mv: int, current_ma: int) -> dict[int, int]:
    """Return registers 5, 7 and 8 of an INA238 at a shunt of 10 mOhm, as its driver calibrates it (TI SBOSA20).

    The bus has 3.125 mV a bit (register 5), the current 2 mA (7), the power 0.4 mW (8, of 24 bits). The stub gives a
    register of 24 bits from the first byte of three registers in a row, so they hold a byte each.
    """
    power = _steps(bus_mv * current_ma, 400).to_bytes(3, "big")
    return {
        5: _steps(bus_mv * 1000, 3125),
        7: _steps(current_ma, 2),
        **{8 + i: byte << 8 for i, byte in enumerate(power)},
    }


def _steps(value: int, step: int) -> int:
    steps, left = divmod(value, step)
    if left:
        raise ValueError(f"{value} is no multiple of {step}")
    return steps


I2C_SLAVE_FORCE, I2C_SMBUS = 0x0706, 0x0720  # linux/i2c-dev.h: force, since the driver holds the address
WRITE, WORD = 0, 3  # linux/i2c.h


class Transfer(ctypes.Structure):
    """struct i2c_smbus_ioctl_data."""

    _fields_ = (
        ("write", ctypes.c_uint8),
        ("register", ctypes.c_uint8),
        ("size", ctypes.c_uint32),
        ("data", ctypes.POINTER(ctypes.c_uint16)),
    )


def write_words(bus: int, address: int, values: Mapping[int, int]) -> None:
    """Set registers of 16 bits, given as the chip's data sheet has them; the stub holds what was written.

    A word of SMBus goes out low byte first, these chips send the high one first: so the bytes change places.
    """
    with Path(f"/dev/i2c-{bus}").open("r+b", buffering=0) as device:
        fcntl.ioctl(device, I2C_SLAVE_FORCE, address)
        for register, value in values.items():
            word = ctypes.c_uint16(int.from_bytes(value.to_bytes(2, "big"), "little"))
            fcntl.ioctl(device, I2C_SMBUS, Transfer(WRITE, register, WORD, ctypes.pointer(word)))
