"""What a SOURCE is, told from its text, and a message with the repair where it is nothing."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest

from jetsel.base.errors import ConfigError
from jetsel.gateway.cameras.source import source_of
from tests.system.daemons import drawn


@pytest.mark.parametrize(
    ("text", "kind", "opened"),
    [
        ("0", "device", "/dev/video0"),
        ("/dev/v4l/by-id/usb-camera", "device", "/dev/v4l/by-id/usb-camera"),
        ("rtsp://door/stream1", "url", "rtsp://door/stream1"),
        ("HTTP://door:81/video.mjpg", "url", "HTTP://door:81/video.mjpg"),
    ],
)
def test_the_text_tells_the_kind(text: str, kind: str, opened: str) -> None:
    found = source_of(text)
    assert (found.kind, found.text) == (kind, opened)


def test_what_lies_on_the_disk_tells_its_kind(tmp_path: Path) -> None:
    video = cv2.VideoWriter(str(tmp_path / "day.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 5, (160, 120))
    video.write(drawn())
    video.release()
    assert source_of(str(tmp_path)).kind == "folder"
    assert source_of(str(tmp_path / "day.avi")).kind == "file"


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("nowhere.mp4", "no such file"),
        ("text.mp4", "as a video"),
        ("ftp://door/stream", "rtsp, rtsps, http"),
        ("cat.jpg", "jetsel classify cat.jpg"),
        ("videotestsrc ! appsink", "GStreamer"),  # PyPI's OpenCV has none
    ],
)
def test_what_cannot_be_watched_is_refused_with_the_repair(
    text: str, repair: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cat.jpg").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("this would be opened again and again")
    with pytest.raises(ConfigError, match=repair):
        source_of(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rtsp://admin:secret@door:554/stream?pwd=secret#secret", "rtsp://door:554/stream"),
        ("rtsp://me:12/secret@door/stream", "rtsp://me"),
        ("rtsp://me:12?secret@door", "rtsp://me"),
        ("http://door/video?user=me@home&pwd=secret", "http://door"),
    ],
)
def test_passwords_are_in_no_name(text: str, name: str) -> None:
    assert source_of(text).name == name


@pytest.mark.parametrize("text", ["rtsp://me:sec/ret@door", "rtsp://me:sec?ret@door", "ftp://me:secret@door"])
def test_passwords_are_in_no_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"%2F|use one of") as caught:
        source_of(text)
    assert "sec" not in str(caught.value)
