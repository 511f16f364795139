"""What runs in the guest as its first process: it sets the chips, loads their drivers, has jetsel read all of it."""

import ctypes
import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from jetsel.base.config import parse
from jetsel.power.finding import find_rails
from tests.kernel.chips import BACK, BUSY, SHUNTS_UOHM, ina238, ina3221, write_words

BUSES = Path("/sys/bus/i2c/devices")
STUB = "SMBus stub driver\n"
CONFIG = Path("/run/jetsel.toml")
OUT = Path("/run/watch.out")
NOBODY = "ipc:///run/nobody.sock"  # what frames are asked about is tested elsewhere


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
