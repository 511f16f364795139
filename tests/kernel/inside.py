"""What runs in the guest as its first process: it does what the test asks for, a line of JSON each, and answers."""

from __future__ import annotations

import ctypes
import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kernel.smbus import write_words

OFF = "off"


def run(*command: str) -> tuple[int, str, str]:
    """Run a command to its end; return its status and what it printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def read(path: str) -> str:
    """Return what a file says, without the end of its line."""
    return Path(path).read_text().rstrip("\n")


def write(path: str, text: str) -> None:
    """Write a file, in one system call as sysfs wants it."""
    Path(path).write_text(text)


def registers(bus: int, address: int, values: dict[str, int]) -> None:
    """Set registers of a chip: numbers, as texts since JSON wants them so, and 16-bit values."""
    write_words(bus, address, {int(register): value for register, value in values.items()})


def names(folder: str) -> list[str]:
    """Return what is in a folder."""
    return sorted(entry.name for entry in Path(folder).iterdir())


def listing(folder: str) -> list[str]:
    """Return a line for each file and link in a folder: who may do what, its name, and what it says or which error."""
    lines = []
    for path in sorted(Path(folder).iterdir()):
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


def reread(config: str, bus: int, address: int, values: dict[str, int]) -> list[int]:
    """Return the microwatts of the total before and after registers change, read through the same open files."""
    from jetsel.config import parse
    from jetsel.power.finding import find

    found = find(parse(config).power)
    (rail,) = found.total
    before = rail.read_uw()
    registers(bus, address, values)
    after = rail.read_uw()
    found.close()
    return [before, after]


DOES = (run, read, write, registers, names, listing, reread)
ASKED: dict[str, Callable[..., Any]] = {function.__name__: function for function in DOES}


def answer(line: bytes) -> dict[str, Any]:
    """Do what one line asks for. An OSError goes back by its number; any other exception ends the machine."""
    name, arguments = json.loads(line)
    try:
        return {"value": ASKED[name](*arguments)}
    except OSError as error:
        return {"errno": error.errno, "of": error.filename}


def main() -> None:
    """Serve until told to switch off. Where this ends early, the kernel panics; the console has what was said."""
    (port,) = Path("/dev").glob("vport*")
    with port.open("r+b", buffering=0) as talk:
        talk.write(b'{"value": "ready"}\n')
        for line in iter(talk.readline, b""):
            if json.loads(line)[0] == OFF:
                break
            talk.write(json.dumps(answer(line)).encode() + b"\n")
    Path("/proc/sysrq-trigger").write_text("o")
    ctypes.CDLL(None).pause()


if __name__ == "__main__":
    main()
