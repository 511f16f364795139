"""The files of cameras that the gateway reads, and what /metrics makes of one status."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel import wire
from jetsel.gateway import camera_states
from jetsel.gateway.camera_states import FRESH_S, MAX_BYTES, CameraState
from jetsel.gateway.metrics import metrics
from jetsel.wire.status import DriftStatus, FrontPoint, FrontStatus, RefusalShift
from tests.unit.client.peer import Seen, status
from tests.unit.hollow import hollow


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


REPLY = status(Seen(wire.Status(1, "x"), None))


def samples(front: FrontStatus | None) -> dict[tuple[str, str], float]:
    """Return the values of family f by name and operating point."""
    family = msgspec.structs.replace(REPLY.families[0], front=front)
    found = metrics(msgspec.structs.replace(REPLY, families=[family]))
    return {(one.name, one.labels.get("point", "")): one.value for kind in found for one in kind.samples}


def test_answers_are_counted_by_operating_point_and_the_time_at_the_cheapest_is_known() -> None:
    points = [FrontPoint("cascade", 0.9, 12.4, 60.0, 5), FrontPoint("cascade:2", 0.7, 2.0, None, 3)]
    found = samples(FrontStatus(points, "cascade:2", "cascade:2", 301.0))
    assert found["jetsel_operating_point_answers_total", "cascade"] == 5
    assert found["jetsel_operating_point_answers_total", "cascade:2"] == 3
    assert found["jetsel_cheapest_point_seconds", ""] == 301.0


def test_a_family_without_a_front_has_no_operating_points() -> None:
    assert not any("point" in name for name, _ in samples(None))


def test_the_share_in_doubt_stands_beside_the_calibrated_one() -> None:
    drift = DriftStatus(refusals=RefusalShift(200, 0.25, 0.28125, is_significant=False))
    family = msgspec.structs.replace(REPLY.families[0], drift=drift)
    found = metrics(msgspec.structs.replace(REPLY, families=[family]))
    shares = {one.name: one.value for kind in found for one in kind.samples if one.name.startswith("jetsel_in_doubt")}
    assert shares == {"jetsel_in_doubt_share": 0.25, "jetsel_in_doubt_calibrated": 0.28125}


def test_what_a_daemon_of_another_version_does_not_send_has_no_value() -> None:
    for reply in (wire.StatusReply(1, "a", "ready"), hollow()):
        found = {one.name: one.value for kind in metrics(reply) for one in kind.samples}
        assert (found["jetsel_up"], found["jetsel_ready"]) == (1.0, 1.0)
        assert {"jetsel_uptime_seconds", "jetsel_queue_requests", "jetsel_lost_replies_total"}.isdisjoint(found)
        assert {name for name, value in found.items() if value == 0} <= {
            "jetsel_out_of_conditions",
            "jetsel_recalibration_hint",
        }
