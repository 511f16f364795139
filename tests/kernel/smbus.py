"""Words written to a chip on an I2C bus behind its driver's back (kernel document: i2c/dev-interface)."""

from __future__ import annotations

import ctypes
import fcntl
from collections.abc import Mapping
from pathlib import Path

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
