"""A process that only samples, and measures idle power meanwhile: `python -m tests.root.resting SYSFS FOLDER`.

It says "ready" once its sampler runs, and begins when it reads a line: by then its work can be followed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jetsel.config import Power
from jetsel.power.finding import find
from jetsel.power.idle import save
from jetsel.power.idling import measure
from jetsel.power.machine import Machine
from jetsel.power.place import Place
from jetsel.power.sampling.sampler import Sampler

SECONDS = 9.0


def main(sysfs: str, folder: str) -> None:
    power = Power(sysfs=sysfs, idle_rate_hz=100)  # so that a short time has samples enough at the slow rate too
    found = find(power)
    found.close()
    assert found.board is not None
    with Machine(sysfs) as machine:
        facts = machine.facts()
    sampler = Sampler(power)
    assert sampler.ready(30)
    print("ready", flush=True)
    sys.stdin.readline()
    place = Place(found.board.name, facts.power_mode.value, facts)
    idle = measure(sampler, SECONDS, place, busy=lambda: None)
    sampler.stop()
    print(save(idle, Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
