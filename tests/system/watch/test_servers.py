"""`jetsel watch` beside servers of Debian's: a camera that speaks RTSP, and an MQTT broker."""

import json
import queue
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.processes import ended
from tests.system.daemons import Daemon, Start, drawn, encoded
from tests.system.watch.conftest import Broker, Open
from tests.waiting import until

pytestmark = pytest.mark.servers
BARS, SQUARES = 0, 10  # patterns of videotestsrc, to which the starter family gives different labels
SYSTEM_PYTHON = "/usr/bin/python3"  # which Debian's packages are for
RTSP_SERVER = Path(__file__).with_name("rtsp_server.py")
GI = "import gi; gi.require_version('GstRtspServer', '1.0')"


class RtspCamera:
    """A camera on the network, which may hang, go away and come back under the same address."""

    def __init__(self, pattern: int) -> None:
        self.process, self.port = self._begin(0, pattern)

    @property
    def url(self) -> str:
        return f"rtsp://me:secret@127.0.0.1:{self.port}/door"

    def show(self, pattern: int) -> None:
        self.process.stdin.write(f"{pattern}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def come_back(self, pattern: int) -> None:
        self.process, _ = self._begin(self.port, pattern)

    def _begin(self, port: int, pattern: int) -> tuple[subprocess.Popen[str], int]:
        command = [SYSTEM_PYTHON, str(RTSP_SERVER), str(port), str(pattern)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline())


@pytest.fixture
def camera() -> Iterator[RtspCamera]:
    if subprocess.run([SYSTEM_PYTHON, "-c", GI], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("needs gstreamer's RTSP server: apt-get install python3-gi gir1.2-gst-rtsp-server-1.0")
    camera = RtspCamera(BARS)
    yield camera
    camera.kill()


def test_what_an_rtsp_camera_sees_is_told_and_one_that_stalled_or_went_away_comes_back(
    shared_daemon: Daemon, watch: Open, camera: RtspCamera
) -> None:
    watcher = watch(camera.url, shared_daemon.endpoint, "--stall-s", "2")
    first = watcher.wait_for("label")
    assert first["source"] == f"rtsp://127.0.0.1:{camera.port}/door"
    camera.process.send_signal(signal.SIGSTOP)
    assert "no frame came" in watcher.wait_for("source", 2)["reason"]
    camera.process.send_signal(signal.SIGCONT)
    assert watcher.wait_for("source", 3)["state"] == "back"
    camera.show(SQUARES)
    second = watcher.wait_for("label", 2)
    assert (second["previous"], second["label"] == first["label"]) == (first["label"], False)
    camera.kill()
    assert watcher.wait_for("source", 4)["state"] == "away"
    until(lambda: "next try in 4 s" in watcher.said())  # the pauses grow
    camera.come_back(SQUARES)
    assert watcher.wait_for("source", 5)["state"] == "back"
    summary = watcher.end()
    assert summary["source_returns"] == 2
    assert summary["frames_skipped"] > 0  # a picture that stands still costs nothing
    assert "secret" not in watcher.said() + watcher.out.read_text()


class Subscriber:
    """Home Assistant's part: it hears what is retained, and what comes."""

    def __init__(
        self, port: int, *, user: str | None = None, password: str | None = None, ca: Path | None = None
    ) -> None:
        self._heard: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.last: dict[str, str] = {}
        self.retained: dict[str, str] = {}
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set(user, password)
        if ca is not None:
            self._client.tls_set_context(ssl.create_default_context(cafile=ca))
        self._client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self._client.on_message = lambda _, __, message: self._heard.put(message)
        self._client.connect("localhost" if ca else "127.0.0.1", port)
        self._client.loop_start()

    def wait_for(self, topic: str, met: Callable[[str], bool] = bool) -> str:
        """Return the last message of a topic, once it is as it should be."""
        return until(lambda: self._look() or (self.last[topic] if met(self.last.get(topic, "")) else ""))

    def _look(self) -> str:
        while not self._heard.empty():
            message = self._heard.get()
            self.last[message.topic] = message.payload.decode()
            if message.retain:
                self.retained[message.topic] = message.payload.decode()
        return ""

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def subscribe() -> Iterator[Callable[..., Subscriber]]:
    with ended(Subscriber, Subscriber.close) as begin:
        yield begin


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "1.png").write_bytes(encoded(drawn(0), ".png"))
    return folder


Subscribe = Callable[..., Subscriber]


def test_home_assistant_finds_the_camera_and_its_label(
    shared_daemon: Daemon, watch: Open, mosquitto: Broker, subscribe: Subscribe, pictures: Path
) -> None:
    broker = mosquitto()
    options = ("--stay", "1", "--name", "front door", "--mqtt", f"127.0.0.1:{broker.port}")
    watcher = watch(pictures, shared_daemon.endpoint, *options)
    event = watcher.wait_for("label")
    seen = subscribe(broker.port)  # later, as Home Assistant may start: all that it needs is retained
    config = json.loads(seen.wait_for("homeassistant/sensor/front_door/label/config"))
    seen.wait_for("homeassistant/sensor/front_door/probability/config")
    state = json.loads(seen.wait_for(config["state_topic"]))
    assert seen.wait_for(config["availability_topic"], "online".__eq__) == "online"
    assert {config["state_topic"], config["availability_topic"]} <= seen.retained.keys()
    assert state == event
    assert config["unique_id"] == "front_door_label"
    assert "[:255]" in config["value_template"], "Home Assistant takes no longer state"
    assert (config["device"]["identifiers"], config["device"]["name"]) == (["front_door"], "front door")
    (pictures / "2.png").write_bytes(encoded(drawn(1), ".png"))
    later = watcher.wait_for("label", 2)
    assert json.loads(seen.wait_for("jetsel/front_door/event", lambda told: later["label"] in told)) == later
    watcher.end()
    seen.wait_for(config["availability_topic"], "offline".__eq__)


def test_the_label_is_offline_while_the_daemon_is_away_and_once_the_watcher_is_killed(
    start: Start, watch: Open, mosquitto: Broker, subscribe: Subscribe, pictures: Path
) -> None:
    daemon, broker = start(), mosquitto()
    seen = subscribe(broker.port)
    watcher = watch(pictures, daemon.endpoint, "--name", "door", "--mqtt", f"127.0.0.1:{broker.port}")
    seen.wait_for("jetsel/door/availability", "online".__eq__)
    daemon.stop(signal.SIGKILL)
    seen.wait_for("jetsel/door/availability", "offline".__eq__)
    start()
    seen.wait_for("jetsel/door/availability", "online".__eq__)
    watcher.process.kill()  # its last will
    seen.wait_for("jetsel/door/availability", "offline".__eq__)


def test_a_broker_that_went_away_is_told_all_that_holds_when_it_is_back(
    shared_daemon: Daemon, watch: Open, mosquitto: Broker, subscribe: Subscribe, pictures: Path
) -> None:
    broker = mosquitto()  # it keeps nothing over its end
    options = ("--stay", "1", "--name", "door", "--mqtt", f"127.0.0.1:{broker.port}")
    watcher = watch(pictures, shared_daemon.endpoint, *options)
    event = watcher.wait_for("label")
    broker.stop()
    until(lambda: f"127.0.0.1:{broker.port} hung up" in watcher.said())
    broker.start()
    until(lambda: "is available again" in watcher.said())
    seen = subscribe(broker.port)
    assert json.loads(seen.wait_for("jetsel/door/state")) == event
    seen.wait_for("homeassistant/sensor/door/label/config")
    seen.wait_for("jetsel/door/availability", "online".__eq__)
    watcher.end()


def test_a_broker_with_tls_and_passwords(
    shared_daemon: Daemon, watch: Open, mosquitto: Broker, subscribe: Subscribe, pictures: Path, tmp_path: Path
) -> None:
    certificate, key, users, password = (tmp_path / name for name in ("broker.crt", "broker.key", "users", "password"))
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(users), "door", "secret"], check=True, timeout=60)
    password.write_text("secret\n")
    password.chmod(0o600)
    lines = "allow_anonymous false", f"password_file {users}", f"certfile {certificate}", f"keyfile {key}"
    broker = mosquitto(*lines)
    options = ["--name", "door", "--mqtt", f"localhost:{broker.port}", "--mqtt-tls"]
    options += ["--mqtt-user", "door", "--mqtt-password-file", str(password)]
    trusting = {"SSL_CERT_FILE": str(certificate)}
    seen = subscribe(broker.port, user="door", password="secret", ca=certificate)
    watch(pictures, shared_daemon.endpoint, *options, env=trusting)
    seen.wait_for("jetsel/door/availability", "online".__eq__)
    stranger = watch(pictures, shared_daemon.endpoint, *options)  # it does not trust the broker's certificate
    until(lambda: "cannot be reached" in stranger.said())
    password.write_text("wrong")
    wrong = watch(pictures, shared_daemon.endpoint, *options, env=trusting)
    until(lambda: "refuses: Not authorized" in wrong.said())
