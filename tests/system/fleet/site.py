"""A repository with a family that really runs, and devices that take their models from it: daemons and agents."""

import gzip
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Plan, PlannedFamily
from jetsel.addons.fleet.publishing import files_of
from jetsel.addons.fleet.reading import read_index
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import Usage
from jetsel.artefact.calibration import ANSWERS
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import Limits, decode, model_input
from jetsel.zoo import scan
from tests.system.command import COMMAND
from tests.system.daemons import Daemon, drawn, encoded
from tests.unit.addons.fleet.published import Pair
from tests.unit.calibrate.answered import answered
from tests.unit.daemon.families import CLASSES, SIDE_PX, calibrate, labels, put_family

FAMILY = "pets"
PHOTOGRAPHS = 40


def put_pets(folder: Path, *models: str, turned: Sequence[str] = ()) -> Path:
    """Write a family whose models mostly agree, with a calibration and the answers that it may be fitted again from.

    turned: models that name the next class instead: whole, and wrong.
    """
    folder.mkdir(parents=True)
    base = np.random.default_rng(7).normal(size=(3 * SIDE_PX**2, CLASSES))
    differ = [np.random.default_rng(place).normal(size=base.shape) / 20 for place in range(len(models))]
    matrices = [np.roll(base + other, name in turned, axis=1) for name, other in zip(models, differ, strict=True)]
    put_family(folder, FAMILY, *models, matrices=matrices)
    calibration = calibrate(folder, FAMILY)
    (folder / "calibration" / ANSWERS).write_bytes(answered(models, 60).condense_answers(calibration.temperatures))
    return folder


def put_canary(folder: Path, family: Path) -> Path:
    """Draw photographs into a folder for each class, as the last model of the family sees them; return the folder."""
    model = scan([family]).families[FAMILY].models[-1]
    engine = OnnxEngine("truth", model.path, concurrency=1, threads=1)
    names = [line.split("\t")[1] for line in labels(FAMILY).splitlines()]
    for seed in range(PHOTOGRAPHS):
        data = encoded(drawn(seed), ".png")
        photograph = decode(memoryview(data), Limits(10**7, 10**7), SIDE_PX)
        logits = engine.infer(model_input(photograph, model.manifest.input)).logits
        place = folder / FAMILY / names[int(logits[0].argmax())]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{seed}.png").write_bytes(data)
    engine.close()
    return folder


@dataclass(frozen=True)
class Site:
    """A repository in a folder, and who signs there."""

    url: Path
    key: Pair
    public: Path  # the file of the public key

    @property
    def storage(self) -> Storage:
        return Storage(str(self.url))

    def publish(self, folder: Path) -> None:
        files, models = files_of(scan([folder]).families[FAMILY], folder / "nothing")
        assert publishing.publish(self.storage, FAMILY, models, files, [self.key.private], []) is not None

    def plan(self, device: str, serial: int, *models: str, key: Pair | None = None, **expected: Any) -> Plan:
        """Plan the newest bundle for a device."""
        index, _ = read_index(self.storage, [self.key.public])
        family = PlannedFamily(bundle=index.bundles[0], models=models, **expected)
        plan = Plan(device=device, serial=serial, families=(family,))
        publishing.write_plan(self.storage, plan, [(key or self.key).private])
        return plan

    def usage(self, device: str) -> list[Usage]:
        """Every line that a device has sent, the oldest first."""
        found = []
        for name in self.storage.names(f"usage/{device}"):
            with self.storage.open(name)[0] as stream:
                lines = gzip.decompress(stream.read(10**8)).splitlines()
            found += [msgspec.json.decode(line, type=Usage) for line in lines]
        return sorted(found, key=lambda line: line.sequence)


def fleet_config(site: Site, name: str, canary: Path | None, more: str = "") -> str:
    """The [fleet] of a device."""
    lines = [
        "[fleet]",
        f'url = "{site.url}"',
        f'device = "{name}"',
        f'keys = ["{site.public}"]',
        "reserve_mb = 1",
        *([] if canary is None else [f'canary = "{canary}"']),
    ]
    return "\n".join([*lines, more, ""])


def state(folder: Path) -> dict[str, str]:
    """The environment of a device whose state lies here."""
    return {"STATE_DIRECTORY": str(folder / "state")}


def run_agent(daemon: Daemon, folder: Path) -> dict[str, Any]:
    """One round of a device's agent; the usage that it sends."""
    process = begin_agent(daemon, folder, "--json")
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    usage: dict[str, Any] = json.loads(said)["usage"]
    return usage


def begin_agent(daemon: Daemon, folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start a round of a device's agent, as the first of a group of processes."""
    command, pipe = [*COMMAND, "agent", "run", "--config", str(daemon.config), *options], subprocess.PIPE
    environment = {**os.environ, **state(folder), "JETSEL_ENDPOINT": daemon.endpoint}
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def outcome(daemon: Daemon, folder: Path) -> tuple[int, str]:
    """The plan in use after one round of a device's agent, and what became of the last plan."""
    said = run_agent(daemon, folder)
    return said["plan"], said["trial"]["outcome"]
