"""The guest's first process: it sets the chips' registers, loads their drivers, and has jetsel read all of it."""

import ctypes
import errno
import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jetsel.base.config import parse
from jetsel.power.finding import find_rails

BUSES = Path("/sys/bus/i2c/devices")
STUB = "SMBus stub driver\n"
CONFIG = Path("/run/jetsel.toml")
OUT = Path("/run/watch.out")
NOBODY = "ipc:///run/nobody.sock"  # what frames are asked about is tested elsewhere


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


def three_channels(bus: int) -> dict[str, Any]:
    """What the files of an INA3221 and jetsel say: of channels that take power, give it back, and are switched off."""
    folder = bound("ina3221", bus, 0x40)
    for number, uohm in enumerate(SHUNTS_UOHM, 1):
        (folder / f"shunt{number}_resistor").write_text(str(uohm))
    write_words(bus, 0x40, ina3221(BUSY))
    names = "VDD_IN", "VDD_CPU", "VDD_SOC"  # there are no labels where there is no device tree
    labels = ", ".join(f'"{bus}-0040/{number}" = "{name}"' for number, name in enumerate(names, 1))
    config = f'[power]\nlabels = {{ {labels} }}\ntotal = ["VDD_IN"]\n'
    seen = {"listing": listing(folder), "power": power(config)}

    found = find_rails(parse(config).power)
    (rail,) = found.total
    before_uw = rail.read_uw()
    write_words(bus, 0x40, ina3221(BACK))
    seen["reread"] = [before_uw, rail.read_uw()]
    found.close()

    (folder / "in2_enable").write_text("0")
    return seen | {"switched_off": power(config)}


def one_channel(bus: int) -> dict[str, Any]:
    """What the files of an INA238 and jetsel say."""
    folder = bound("ina238", bus, 0x44)
    write_words(bus, 0x44, ina238(bus_mv=20_000, current_ma=2_000))
    return {"listing": listing(folder), "power": power('[power]\nsensor = "ina238"\ntotal = ["VIN"]\n')}


def bound(chip: str, bus: int, address: int) -> Path:
    """Load a chip's driver, and return the folder of its files for the one at this address of the stub's bus."""
    subprocess.run(["/run/busybox", "insmod", f"/run/modules/{chip}.ko"], check=True)
    (BUSES / f"i2c-{bus}/new_device").write_text(f"{chip} {address:#x}")
    (folder,) = (BUSES / f"{bus}-{address:04x}/hwmon").iterdir()
    return folder


def power(config: str) -> Any:
    """Return what `jetsel power --json` prints with this jetsel.toml."""
    CONFIG.write_text(config)
    command = [sys.executable, "-m", "jetsel", "power", "--json", "--sysfs", "/sys", "--config", str(CONFIG)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def listing(folder: Path) -> list[str]:
    """Return a line for each file and link in a folder: who may do what, its name, and what it says or which error."""
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            lines.append(f"{path.name} -> {path.readlink()}")
        elif path.is_file():
            lines.append(f"{path.stat().st_mode & 0o777:o} {path.name}: {_said(path)}")
    return lines


def _said(path: Path) -> str:
    try:
        return repr(path.read_text())
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def camera() -> dict[str, Any]:
    """Return the events of a watcher that was interrupted once it had frames."""
    command = [sys.executable, "-m", "jetsel", "watch", "0", "--endpoint", NOBODY, "--stall-s", "60"]
    with OUT.open("wb") as out, subprocess.Popen(command, stdout=out) as watcher:
        while not any(event["event"] == "source" for event in events()) and watcher.poll() is None:
            pass
        watcher.send_signal(signal.SIGINT)
    return {"status": watcher.returncode, "events": events()}


def events() -> list[dict[str, Any]]:
    """All that was told so far, by whole lines."""
    return [json.loads(line) for line in OUT.read_text().splitlines(keepends=True) if line.endswith("\n")]


def main() -> None:
    """Tell the host what was seen, and switch off. Where this ends early the kernel panics; the console says why."""
    (stub,) = (path for path in BUSES.glob("i2c-*") if (path / "name").read_text() == STUB)
    bus = int(stub.name.removeprefix("i2c-"))
    seen = {"ina3221": three_channels(bus), "ina238": one_channel(bus), "camera": camera()}
    (port,) = Path("/dev").glob("vport*")
    port.write_text(json.dumps(seen))
    Path("/proc/sysrq-trigger").write_text("o")
    ctypes.CDLL(None).pause()


if __name__ == "__main__":
    main()
