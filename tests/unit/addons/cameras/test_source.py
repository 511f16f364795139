"""What a SOURCE is, told from its text, and a message with the repair where it is nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.addons.cameras.source import Capture, SourceGoneError, source_of
from jetsel.base.errors import ConfigError, ImageTooLargeError
from jetsel.image import Limits
from tests.system.daemons import drawn
from tests.system.watch.watchers import film


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


def test_what_may_come_later_is_accepted_until_then(tmp_path: Path) -> None:
    path = tmp_path / "usb"
    assert source_of(str(path), may_come=True).kind == "file"
    with pytest.raises(SourceGoneError, match="no such file"):
        Capture(source_of(str(path), may_come=True), 5.0, threading.Event())
    path.mkdir()
    assert source_of(str(path), may_come=True).kind == "folder"
    for text in ("rtps://door", "rtsp:/door/stream1", "rtsp//door", "cat.jpg"):  # none of these ever comes
        with pytest.raises(ConfigError):
            source_of(text, may_come=True)


@pytest.fixture
def somebody() -> Iterator[None]:
    """Whom the kernel refuses: root may open everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    yield
    os.seteuid(before)


@pytest.mark.parametrize(("mode", "reason"), [(None, "no such device"), (0o000, "group video"), (0o666, "not a video")])
def test_a_device_that_cannot_be_opened_says_why(mode: int | None, reason: str, somebody: None) -> None:
    path = Path("/dev/shm", f"jetsel-{os.getpid()}-{mode}")
    try:
        if mode is not None:
            path.touch()
            path.chmod(mode)
        with pytest.raises(SourceGoneError, match=reason):
            Capture(source_of(str(path)), 1.0, threading.Event())
    finally:
        path.unlink(missing_ok=True)


def test_frames_over_the_limit_are_refused_before_one_is_decoded(tmp_path: Path) -> None:
    source = source_of(str(film(tmp_path / "day.avi", [drawn()], 5)))
    Capture(source, 5.0, threading.Event(), Limits(1, 160 * 120)).close()
    with pytest.raises(ImageTooLargeError, match="160 x 120"):
        Capture(source, 5.0, threading.Event(), Limits(1, 160 * 120 - 1))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rtsp://admin:secret@door:554/stream?pwd=secret#secret", "rtsp://door:554/stream"),
        ("rtsp://me:12/secret@door/stream", "rtsp://me"),
        ("rtsp://me:12?secret@door", "rtsp://me"),
        ("http://door/video?user=me@home&pwd=secret", "http://door"),
        ("rtsp://door:554/user=admin_password=secret_channel=1_stream=0.sdp", "rtsp://door:554"),
        ("rtsp://door/live/pwd%3dsecret/1", "rtsp://door/live"),
    ],
)
def test_passwords_are_in_no_name(text: str, name: str) -> None:
    assert source_of(text).name == name


@pytest.mark.parametrize(
    "text",
    [
        "rtsp://me:sec/ret@door",
        "rtsp://me:sec?ret@door",
        "ftp://me:secret@door",
        "rtsp:/me:secret@door",
        "tcp://me:secret@door",
    ],
)
def test_passwords_are_in_no_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"%2F|use one of|no such file|leave them out") as caught:
        source_of(text)
    assert "sec" not in str(caught.value)
