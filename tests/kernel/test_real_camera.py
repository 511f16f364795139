"""A V4L2 device of Linux's own virtual camera driver, as `jetsel watch` reads it."""

from __future__ import annotations

from typing import Any


def test_a_v4l2_camera_is_watched(seen: dict[str, Any]) -> None:
    camera = seen["camera"]
    (source,) = (event for event in camera["events"] if event["event"] == "source")
    assert (source["source"], source["state"]) == ("/dev/video0", "back")
    assert camera["events"][-1]["event"] == "summary"
    assert camera["events"][-1]["frames_read"] > 0
    assert camera["status"] == 0
