"""`jetsel calibrate --objective energy` on a simulated TX2 that draws 3 W, and 5 W more for each core that works.

So what a model truly takes is known: 5 W times its processor time, which is measured here, before and after, beside
a sampler that is as busy: processors that share a core slow each other down.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jetsel import image
from jetsel.calibrate.assemble import Identity
from jetsel.calibrate.calibrating import Calibrated, Order, calibrate
from jetsel.calibrate.goal import Goal
from jetsel.calibrate.record import Energies, Loaded, load, loaded_models
from jetsel.config import Power
from jetsel.features import NAMES, extract, table_hash
from jetsel.policies.calibration import Calibration
from jetsel.power.sampling.sampler import Sampler
from tests.simulator import Simulator, following, unavailable
from tests.system.command import COMMAND
from tests.system.test_calibrate import configured, installed, put
from tests.unit.calibrate.record.making import STARTER_FAMILY

TREE = Path(__file__).parents[1] / "data/sysfs/jetson-tx2"
REPOSITORY = Path(__file__).parents[2]
IDLE_W, BUSY_W = 3.0, 5.0
FASTEST = 0x7007  # a new value every 0.84 ms
PHOTOGRAPHS = 60
WANTED = 0.45  # of right answers: less than the best model gives, so that there is something to save
ROUNDS, ROUND_S = 3, 0.4
FEATURES = "features"
COUNTED = 0.03  # of the law: threads that only the command has (progress, sampler) work beside the models

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")


@dataclasses.dataclass(frozen=True)
class Law:
    """What each model, and the features, must take: mean over rounds in mJ, and the farthest round from it."""

    mean_mj: Mapping[str, float]
    error_mj: Mapping[str, float]
    features_w: float


@dataclasses.dataclass(frozen=True)
class Run:
    """The command's run: what it said at the end, what it installed and recorded, and the law."""

    last: dict[str, Any]
    calibration: Calibration
    loaded: Loaded
    law: Law


def rest(simulator: Simulator, folder: Path) -> None:
    """Measure idle power, the sampler's work in it as in every window."""
    command = [sys.executable, "-m", "tests.root.resting", str(simulator.root), str(folder)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        simulator.follow(process.pid)
        process.communicate("go\n", timeout=60)
    assert process.returncode == 0


def beside_a_sampler(sysfs: Path, photo: Path) -> dict[str, list[float]]:
    sampler = Sampler(Power(sysfs=str(sysfs)))
    try:
        assert sampler.ready(30)
        sampler.open()
        return processor_ms(photo)
    finally:
        sampler.stop()


def processor_ms(photo: Path) -> dict[str, list[float]]:
    """The processor time of one run of each model, its input made anew, and of the features: one value a round."""
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    decoded = image.decode(photo.read_bytes(), limits, STARTER_FAMILY.decode_px)
    found: dict[str, list[float]] = {}
    with loaded_models(STARTER_FAMILY) as engines:

        def once(name: str) -> None:
            spec = next(m.manifest.input for m in STARTER_FAMILY.models if m.manifest.name == name)
            engines[name].infer(image.model_input(decoded, spec))

        runs = {name: partial(once, name) for name in engines} | {FEATURES: partial(extract, decoded.bgr)}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                run()
                began_s, count = time.process_time(), 0
                while time.process_time() - began_s < ROUND_S:
                    run()
                    count += 1
                found.setdefault(name, []).append((time.process_time() - began_s) * 1e3 / count)
    return found


def law_of(*measured: Mapping[str, list[float]]) -> Law:
    rounds = {name: [BUSY_W * ms for one in measured for ms in one[name]] for name in measured[0]}
    mean = {name: sum(each) / len(each) for name, each in rounds.items()}
    error = {name: max(abs(one - mean[name]) for one in each) for name, each in rounds.items()}
    return Law(mean, error, BUSY_W)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("tx2")
    board = base / "board"
    (board / "var/lib/nvpmodel").mkdir(parents=True)
    (board / "var/lib/nvpmodel/status").write_text("pmode:0000 fmode:fanNull\n")
    photos, recording = put(base / "photos", PHOTOGRAPHS), base / "recording.sqlite"
    power = following(IDLE_W, BUSY_W)
    with Simulator(TREE, board / "sys", power=power, chip=FASTEST) as simulator:
        rest(simulator, base / "power")
        before = beside_a_sampler(simulator.root, next(photos.rglob("*.jpg")))
        settings = f'[power]\nsysfs = "{simulator.root}"\ncalibration = "{base}/power"\n'
        command = ["calibrate", str(photos), "--objective", "energy", "--min-accuracy", str(WANTED)]
        command += [
            "--force",
            "--json-progress",
            "--recording",
            str(recording),
            "--config",
            str(configured(base, "", settings)),
        ]
        environment = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"}
        with subprocess.Popen(
            [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            simulator.follow(process.pid)
            out, err = process.communicate(timeout=280)
        assert process.returncode == 0, err
        after = beside_a_sampler(simulator.root, next(photos.rglob("*.jpg")))
    last = json.loads(out.splitlines()[-1])
    return Run(last, installed(base), load(recording, STARTER_FAMILY), law_of(before, after))


def energies(run: Run) -> Energies:
    assert run.loaded.times.energies is not None, run.loaded.times.energy_reason
    return run.loaded.times.energies


def test_each_model_s_energy_is_what_the_law_says_within_its_bound_and_the_law_s_own_error(run: Run) -> None:
    found = energies(run)
    for name, mean_mj in found.mean_mj.items():
        law_mj = run.law.mean_mj[name]
        within = found.half_width_mj[name] + run.law.error_mj[name] + COUNTED * law_mj
        print(f"{name}: {mean_mj:.3f} mJ, stored bound {found.half_width_mj[name]:.3f}; by the law {law_mj:.3f}")
        assert mean_mj == pytest.approx(law_mj, abs=within), name
    assert dict(run.calibration.energies_mj) == dict(found.mean_mj)
    assert dict(run.calibration.energies_half_mj) == dict(found.half_width_mj)


def test_the_models_stand_in_the_law_s_order(run: Run) -> None:
    by_law = sorted(energies(run).mean_mj, key=lambda name: run.law.mean_mj[name])
    assert sorted(energies(run).mean_mj, key=lambda name: energies(run).mean_mj[name]) == by_law


def test_the_chooser_draws_what_one_busy_core_does(run: Run) -> None:
    # At most: where others hold the core, its time goes on and its energy does not.
    print(f"features: {energies(run).chooser_w:.2f} W of {run.law.features_w} W")
    assert energies(run).chooser_w == pytest.approx(run.law.features_w, rel=0.5)
    assert run.calibration.chooser_energy_mj is not None


def concluded(run: Run) -> Calibrated:
    """What the same recording leads to with the energies of the law."""
    half = dict.fromkeys(run.loaded.recording.models, 0.0)
    by_law = {name: run.law.mean_mj[name] for name in run.loaded.recording.models}
    chooser_w = run.law.mean_mj[FEATURES] / run.loaded.times.features_ms
    law = Energies(by_law, half, chooser_w, 1)
    recording = dataclasses.replace(run.loaded.recording, energies_mj=by_law, chooser_w=chooser_w)
    times = dataclasses.replace(run.loaded.times, energies=law)
    loaded = dataclasses.replace(run.loaded, recording=recording, times=times)
    family, labels = STARTER_FAMILY, STARTER_FAMILY.labels
    identity = Identity(family.name, labels.sha256, run.loaded.models_sha256, table_hash(), family.decode_px)
    order = Order(names=tuple(labels.names), goal=Goal("energy", min_accuracy=WANTED))
    whole_ms = run.loaded.times.features_ms
    return calibrate(loaded, identity, order, lambda names: whole_ms * len(names) / len(NAMES), lambda *_: None)


def test_the_conclusion_is_that_of_the_law(run: Run) -> None:
    by_law = concluded(run)
    true = by_law.findings.comparisons["top1"]
    figures, winner = run.calibration.figures["top1"], run.last["winner"]
    ratio = figures[winner]["mean_mj"] / figures[f"single:{true.best_single}"]["mean_mj"]
    law_of_winner = true.policies[winner].vs_best_single.energy_ratio
    law_of_best = true.policies[by_law.findings.winner].vs_best_single.energy_ratio
    assert law_of_winner is not None
    assert law_of_best is not None
    print(f"{winner} for {ratio:.3f} of {true.best_single}'s energy, by the law {law_of_winner:.3f};")
    print(f"by the law {by_law.findings.winner} wins, for {law_of_best:.3f}; {run.last['verdict']}")
    assert ratio == pytest.approx(law_of_winner, rel=0.15)
    assert law_of_winner <= 1.15 * law_of_best, "what was chosen is as good by the law as what the law would choose"
    assert run.calibration.objective == "energy"
