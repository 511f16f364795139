"""A sensor as a test sees it: its registers on one side, the driver's files and `jetsel power` on the other."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import Any

from tests.kernel.chips import Channel, ina3221
from tests.kernel.machine import Machine

BUSES = "/sys/bus/i2c/devices"
STUB = "SMBus stub driver"
CONFIG = "/run/jetsel.toml"


class Board:
    """A chip at one address of the stub's bus, with its driver loaded while `with` lasts."""

    def __init__(self, machine: Machine, chip: str = "ina3221", address: int = 0x40) -> None:
        self.machine = machine
        self.chip, self.address = chip, address
        self.bus = self._stub()
        self.device = f"{self.bus}-{address:04x}"

    def __enter__(self) -> Board:
        self._busybox("insmod", f"/run/modules/{self.chip}.ko")
        self.machine.call("write", f"{BUSES}/i2c-{self.bus}/new_device", f"{self.chip} {self.address:#x}")
        (name,) = self.names(f"{BUSES}/{self.device}/hwmon")
        self.folder = f"{BUSES}/{self.device}/hwmon/{name}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.machine.call("write", f"{BUSES}/i2c-{self.bus}/delete_device", f"{self.address:#x}")
        self._busybox("rmmod", self.chip)

    def set(self, *channels: Channel) -> None:
        """Have the three channels of an INA3221 see these voltages."""
        self.registers(ina3221(channels))

    def registers(self, values: dict[int, int]) -> None:
        """Write registers of the chip."""
        self.machine.call("registers", self.bus, self.address, values)

    def read(self, file: str) -> str:
        """Return what one of the driver's files says; raises the OSError that it gives."""
        return str(self.machine.call("read", f"{self.folder}/{file}"))

    def write(self, file: str, value: int) -> None:
        """Write one of the driver's files."""
        self.machine.call("write", f"{self.folder}/{file}", str(value))

    def listing(self) -> list[str]:
        """Return a line for each of the driver's files."""
        return list(self.machine.call("listing", self.folder))

    def power(self, config: str) -> dict[str, Any]:
        """Return what `jetsel power --once --json` prints in the guest, with this jetsel.toml."""
        self.machine.call("write", CONFIG, config)
        command = (sys.executable, "-m", "jetsel", "power", "--once", "--json", "--sysfs", "/sys", "--config", CONFIG)
        status, out, err = self.machine.call("run", *command)
        assert status == 0, f"jetsel power ended with {status}: {err}"
        return dict(json.loads(out))

    def reread(self, config: str, values: dict[int, int]) -> list[int]:
        """Return the total in microwatts before and after registers change, read by jetsel through open files."""
        return list(self.machine.call("reread", config, self.bus, self.address, values))

    def names(self, folder: str) -> list[str]:
        """Return what is in a folder of the guest."""
        return list(self.machine.call("names", folder))

    def _stub(self) -> int:
        buses = [name for name in self.names(BUSES) if name.startswith("i2c-")]
        (bus,) = (name for name in buses if self.machine.call("read", f"{BUSES}/{name}/name") == STUB)
        return int(bus.removeprefix("i2c-"))

    def _busybox(self, *command: str) -> None:
        status, _, err = self.machine.call("run", "/run/busybox", *command)
        assert status == 0, f"{' '.join(command)}: {err}"
