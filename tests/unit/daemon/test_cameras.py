"""The daemon shows a camera for as long as its reports are fresh."""

from __future__ import annotations

import pytest

from jetsel.base.errors import OverLimitError
from jetsel.daemon.cameras import FRESH_S, Cameras
from jetsel.wire.cameras import MOST_CAMERAS, CameraReport


def camera(name: str, region: str | None = None, read: int = 0) -> CameraReport:
    return CameraReport(name, True, region, None, None, None, None, None, None, read, 0, 0, 0)


def test_a_report_replaces_the_last_one_of_the_same_camera_of_the_same_user_alone() -> None:
    now_s = [0.0]
    cameras = Cameras(lambda: now_s[0])
    cameras.report("uid 1", [camera("door"), camera("yard", "left")])
    cameras.report("uid 2", [camera("door", read=5)])
    now_s[0] = 2.0
    cameras.report("uid 1", [camera("door", read=9)])
    assert [(one.name, one.region, one.frames_read, one.ago_s) for one in cameras.status()] == [
        ("door", None, 9, 0.0),
        ("door", None, 5, 2.0),
        ("yard", "left", 0, 2.0),
    ]


def test_a_camera_without_a_report_is_left_out_and_makes_room() -> None:
    now_s = [0.0]
    cameras = Cameras(lambda: now_s[0])
    cameras.report("uid 1", [camera(f"c{i}") for i in range(MOST_CAMERAS)])
    with pytest.raises(OverLimitError, match="watch fewer of them"):
        cameras.report("uid 2", [camera("one more")])
    now_s[0] = FRESH_S + 0.1
    cameras.report("uid 2", [camera("one more")])
    assert [one.name for one in cameras.status()] == ["one more"]
