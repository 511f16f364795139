"""`jetsel watch fit-gate` with a clip, beside a real daemon."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.system.command import jetsel as command
from tests.system.daemons import Daemon, drawn
from tests.system.watch.conftest import Open
from tests.system.watch.watchers import film


def noisy_film(path: Path) -> Path:
    """Five scenes of 30 frames each, with noise that is new in each frame."""
    noise = np.random.default_rng(0)
    pictures = [drawn(seed) for seed in (0, 1, 2, 0, 1) for _ in range(30)]
    shown = [np.clip(one + noise.normal(0, 3, one.shape), 0, 255).astype(np.uint8) for one in pictures]
    return film(path, shown, 1)


def test_the_gate_is_printed_and_written_to_the_camera(shared_daemon: Daemon, tmp_path: Path) -> None:
    clip, config = noisy_film(tmp_path / "clip.avi"), tmp_path / "cameras.toml"
    config.write_text('[[cameras]]\nname = "door"  # the front\nsource = "0"\n')
    options = ("--endpoint", shared_daemon.endpoint, "--late-s", "0.5")
    done = command("watch", "fit-gate", clip, *options, "--json", "--camera", "door", "--config", config)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["frames"], found["agree"], found["late_s"]) == (150, 0.98, 0.5)
    assert found["events"] >= 3
    assert [one["feature"] for one in found["features"]] == ["blocks", "edges", "histogram"]
    best = next(one for one in found["features"] if found["gate"] == f"{one['feature']}:{one['threshold']:g}")
    assert best["frames_asked"] < 75
    assert (best["agreement"] >= 0.98, best["events_missed"], best["largest_delay_s"] <= 0.5) == (True, 0, True)
    assert config.read_text() == f'[[cameras]]\nname = "door"  # the front\ngate = "{found["gate"]}"\nsource = "0"\n'
    assert f'wrote gate = "{found["gate"]}"' in done.stderr
    table = command("watch", "fit-gate", clip, *options)
    assert table.stdout.splitlines()[-1] == f"--gate {found['gate']}"


@pytest.mark.slow
def test_a_watcher_with_the_fitted_gate_reports_the_same_labels(
    shared_daemon: Daemon, watch: Open, tmp_path: Path
) -> None:
    clip = noisy_film(tmp_path / "clip.avi")
    done = command("watch", "fit-gate", clip, "--endpoint", shared_daemon.endpoint)
    gate = done.stdout.splitlines()[-1].split()
    labels = []
    for options in (["--gate", "none"], gate):
        watcher = watch(clip, shared_daemon.endpoint, *options)
        assert watcher.process.wait(60) == 0, watcher.said()
        labels.append([event["label"] for event in watcher.events("label")])
    assert labels[0] == labels[1]
    assert watcher.events("summary")[0]["frames_skipped"] > 50


def test_what_is_wrong_is_told_before_any_frame_is_sent(tmp_path: Path) -> None:
    clip, config = film(tmp_path / "clip.avi", [drawn(0)], 3), tmp_path / "cameras.toml"
    config.write_text('[[cameras]]\nname = "door"\n')
    for options, words in (
        ([clip, "--camera", "dor", "--config", config], "did you mean door"),
        ([clip, "--camera", "door", "--config", tmp_path / "none.toml"], "No such file"),
        (["rtsp://door"], "video file"),
        ([clip, "--region", "2"], "its right half"),
    ):
        done = command("watch", "fit-gate", *options, "--endpoint", f"ipc://{tmp_path}/no.sock")
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert config.read_text() == '[[cameras]]\nname = "door"\n'
