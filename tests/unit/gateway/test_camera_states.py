"""The file of the cameras' states: written whole and bounded, and what is wrong in it costs itself alone."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.gateway import camera_states
from jetsel.gateway.camera_states import FRESH_S, MAX_BYTES, CameraState
from jetsel.gateway.metrics import metrics


def state(name: str = "door", region: str | None = None, read: int = 7, label: str | None = "cat") -> CameraState:
    return CameraState(name, True, region, None, None, label, "n1", "2026-01-01T00:00:00Z", 0.9, read, 1, 2, 3)


def read(folder: Path) -> list[CameraState]:
    return camera_states.read({"XDG_RUNTIME_DIR": str(folder)})


def put(folder: Path, cameras: list[Any], pid: int | None = None, age_s: float = 0.0, number: int = 1) -> Path:
    """Write a file as another program might."""
    path = folder / "jetsel-watch" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"written_s": time.monotonic() - age_s, "pid": pid or os.getpid(), "cameras": cameras}))
    return path


def test_what_is_written_is_read_by_name_and_region_for_the_group_alone(tmp_path: Path) -> None:
    path = camera_states.own_path({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert path == tmp_path / "jetsel-watch" / f"{os.getpid()}.json"
    camera_states.write(path, [state("yard", "left"), state()])
    assert read(tmp_path) == [state(), state("yard", "left")]
    assert path.stat().st_mode & 0o777 == 0o640
    assert camera_states.own_path({"RUNTIME_DIRECTORY": "/run/jetsel-watch:/run/x", "XDG_RUNTIME_DIR": "/x"}) == Path(
        "/run/jetsel-watch/state.json"
    )
    assert camera_states.own_path({}) is None


def test_a_file_holds_no_more_than_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "jetsel-watch" / "1.json"
    camera_states.write(path, [state(f"c{number}", label="x" * 500) for number in range(1000)])
    assert MAX_BYTES / 2 < path.stat().st_size <= MAX_BYTES
    assert len(read(tmp_path)) > 300


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("frames_read", 10**400),
        ("frames_read", -1),
        ("frames_asked", "many"),
        ("probability", 2),
        ("label", "x" * 513),
        ("name", ""),
        ("connected", None),
    ],
)
def test_a_bad_value_costs_one_camera(tmp_path: Path, key: str, value: Any) -> None:
    good = msgspec.to_builtins(state("yard"))
    put(tmp_path, [{**msgspec.to_builtins(state()), key: value}, good, 7])
    found = read(tmp_path)
    assert found == [state("yard")]
    (up,) = (one for one in metrics(None, found) if one.name == "jetsel_camera_up")
    assert [sample.labels["camera"] for sample in up.samples] == ["yard"]


def test_an_old_file_one_of_a_dead_process_and_what_is_no_such_file_are_ignored(tmp_path: Path) -> None:
    cameras = [msgspec.to_builtins(state())]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    put(tmp_path, cameras, pid=ended.pid, number=2)
    put(tmp_path, cameras, age_s=FRESH_S + 1, number=3)
    put(tmp_path, cameras, age_s=-60, number=4)
    (tmp_path / "jetsel-watch" / "5.json").write_text("[" * 100_000)
    (tmp_path / "jetsel-watch" / "6.json").mkdir()
    (tmp_path / "jetsel-watch" / "7.json").write_bytes(b" " * (MAX_BYTES + 1))
    os.mkfifo(tmp_path / "jetsel-watch" / "8.json")
    assert read(tmp_path) == []
    put(tmp_path, cameras)
    assert read(tmp_path) == [state()]


def test_of_two_cameras_of_one_name_the_newest_counts(tmp_path: Path) -> None:
    put(tmp_path, [msgspec.to_builtins(state(read=1))], age_s=5, number=1)
    put(tmp_path, [msgspec.to_builtins(state(read=2))], age_s=1, number=2)
    put(tmp_path, [msgspec.to_builtins(state(read=3))], age_s=9, number=3)
    assert read(tmp_path) == [state(read=2)]
