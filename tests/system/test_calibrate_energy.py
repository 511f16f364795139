"""`jetsel calibrate --objective energy` on a simulated TX2 that draws 3 W, and 5 W more for each core that works.

So what a model truly takes is known: 5 W times its processor time, which the test measures by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from jetsel import image
from jetsel.calibrate.record import load, loaded_models
from tests.simulator import Simulated, Work
from tests.system.boards import Board
from tests.system.command import COMMAND
from tests.system.test_calibrate import configured, installed, put
from tests.unit.calibrate.record.making import STARTER_FAMILY

IDLE_W, BUSY_W = 3.0, 5.0
MODELS = "xs", "xl"


def law_mj(photo: Path) -> dict[str, float]:
    """What one run of each model takes by its processor time, its input made anew."""
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    decoded = image.decode(photo.read_bytes(), limits, STARTER_FAMILY.decode_px)
    specs = {model.manifest.name: model.manifest.input for model in STARTER_FAMILY.models}
    found = {}
    with loaded_models(STARTER_FAMILY) as engines:
        for name in MODELS:
            run = partial(lambda name: engines[name].infer(image.model_input(decoded, specs[name])), name)
            run()
            began_s, count = time.process_time(), 0
            while time.process_time() - began_s < 0.5:
                run()
                count += 1
            found[name] = BUSY_W * (time.process_time() - began_s) * 1e3 / count
    return found


@pytest.mark.slow
def test_energies_are_those_of_the_work_and_what_saves_most_is_installed(tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    board.calibrate(IDLE_W)
    photos, recording = put(tmp_path / "photos", 60), tmp_path / "recording.sqlite"
    settings = f'[power]\nsysfs = "{board.sysfs}"\ncalibration = "{board.root / "idle"}"\n'
    config = configured(tmp_path, f"only = {json.dumps(MODELS)}\n", settings)
    command = ["calibrate", str(photos), "--objective", "energy", "--min-accuracy", "0.2", "--force"]
    command += ["--json-progress", "--recording", str(recording), "--config", str(config)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent"}
    work = Work(IDLE_W, BUSY_W)
    with (
        Simulated(board, work),
        subprocess.Popen(
            [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process,
    ):
        work.follow(process.pid)
        out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    energies = load(recording, STARTER_FAMILY, MODELS).times.energies
    assert energies is not None
    by_law = law_mj(next(photos.rglob("*.jpg")))
    for name in MODELS:  # processors that share a core slow each other down: what is compared is the size
        assert energies.mean_mj[name] == pytest.approx(by_law[name], rel=0.3), name
        assert energies.half_width_mj[name] < 0.1 * energies.mean_mj[name]
    assert 0 < energies.chooser_w <= 1.3 * BUSY_W, "extracting features keeps at most one core busy"
    made = installed(tmp_path)
    assert (made.objective, dict(made.energies_mj)) == ("energy", dict(energies.mean_mj))
    assert json.loads(out.splitlines()[-1])["winner"]
