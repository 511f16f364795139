"""What a SOURCE is, told from its text, and the logins of cameras and brokers."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.addons.cameras.config import Camera, MqttSettings
from jetsel.addons.cameras.settings import broker_of, with_login
from jetsel.addons.cameras.source import Capture, SourceGoneError, source_of
from jetsel.base.errors import ConfigError, ImageTooLargeError
from jetsel.image import Limits
from tests.system.daemons import drawn
from tests.system.watch.watchers import film

LIMITS = Limits(16_000_000, 50_000_000)


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
    assert source_of(str(path), may_be_absent=True).kind == "file"
    with pytest.raises(SourceGoneError, match="no such file"):
        Capture(source_of(str(path), may_be_absent=True), 5.0, threading.Event(), LIMITS)
    path.mkdir()
    assert source_of(str(path), may_be_absent=True).kind == "folder"
    for text in ("rtps://door", "rtsp:/door/stream1", "rtsp//door", "cat.jpg"):  # none of these ever comes
        with pytest.raises(ConfigError):
            source_of(text, may_be_absent=True)


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
            Capture(source_of(str(path)), 1.0, threading.Event(), LIMITS)
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


SOURCE = "rtsp://10.0.0.7/stream1"


def test_user_and_password_go_together(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("p@ss\n")
    password.chmod(0o600)
    assert with_login(Camera("door", SOURCE)) == SOURCE
    both = Camera("door", SOURCE, user="me", password_file=str(password))
    assert with_login(both) == "rtsp://me:p%40ss@10.0.0.7/stream1"
    for half in ({"user": "me"}, {"password_file": str(password)}):
        with pytest.raises(ConfigError, match="give both, or neither"):
            with_login(Camera("door", SOURCE, **half))


@pytest.mark.parametrize(
    ("text", "tls", "host", "port"),
    [
        ("homeassistant.local", False, "homeassistant.local", 1883),
        ("10.0.0.2:1884", False, "10.0.0.2", 1884),
        ("broker", True, "broker", 8883),
        ("[::1]:1884", True, "::1", 1884),
    ],
)
def test_a_broker_is_a_host_and_a_port(text: str, tls: bool, host: str, port: int) -> None:
    found = broker_of(MqttSettings(text, tls=tls))
    assert found is not None
    assert (found.host, found.port, found.tls) == (host, port, tls)


@pytest.mark.parametrize("text", ["", "host:", "host:port", "host:0", "host:70000", "::1", "mqtt://host"])
def test_what_is_no_broker_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"homeassistant\.local"):
        broker_of(MqttSettings(text))


def test_a_password_is_read_from_a_file_that_not_everybody_may_read(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret with blanks \n")
    file.chmod(0o600)
    found = broker_of(MqttSettings("host", "me", str(file)))
    assert found is not None
    assert found.password == "secret with blanks "
    with pytest.raises(ConfigError, match="go together"):
        broker_of(MqttSettings("host", "me"))
