"""Frigate's objects get sub-labels: with a real broker and daemon, and a stand-in for Frigate's HTTP API."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

import jetsel
from tests.processes import ended
from tests.system.daemons import Daemon, drawn
from tests.system.watch.conftest import Broker, Mosquitto, Open
from tests.system.watch.frigate_server import PASSWORD, USER, FrigateObject, FrigateServer
from tests.system.watch.watchers import Watcher
from tests.waiting import until

pytestmark = pytest.mark.servers
SOON_S = 2.0
MAP = ("--map", "bird=starter")


@pytest.fixture
def open_frigate() -> Iterator[Callable[..., FrigateServer]]:
    with ended(FrigateServer, FrigateServer.close) as begin:
        yield begin


class Publisher:
    """Frigate's part at the broker."""

    def __init__(self, broker: Mosquitto, prefix: str = "frigate") -> None:
        self.topic = f"{prefix}/events"
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    def send(self, kind: str, one: FrigateObject) -> None:
        message = {"type": kind, "before": one.state(), "after": one.state()}
        self._client.publish(self.topic, json.dumps(message))

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def pictures(seed: int, count: int) -> list[bytes]:
    """Images of one thing that differ a little, as a better snapshot does from the one before."""
    qualities = range(95, 95 - count, -1)
    return [cv2.imencode(".jpg", drawn(seed), [cv2.IMWRITE_JPEG_QUALITY, one])[1].tobytes() for one in qualities]


def track(frigate: FrigateServer, event_id: str, seed: int, images: int, label: str = "bird") -> FrigateObject:
    one = FrigateObject(event_id, label, start_time=time.time(), images=pictures(seed, images)[:1])
    frigate.objects[event_id] = one
    return one


def grow(publisher: Publisher, one: FrigateObject, seed: int, images: int) -> None:
    """Have an object's life pass: new, a better image once the last was looked at (or soon, if nobody does), end."""
    publisher.send("new", one)
    for image in pictures(seed, images)[1:]:
        soon_s = time.monotonic() + SOON_S
        until(lambda: one.images[-1] in one.shown or time.monotonic() > soon_s)  # noqa: B023
        one.images.append(image)
        publisher.send("update", one)
    one.end_time = time.time()
    publisher.send("end", one)


def about(watcher: Watcher, event_id: str) -> list[str]:
    return [one["event"] for one in watcher.events() if one.get("object") == event_id]


def began(watch: Open, frigate: FrigateServer, broker: Mosquitto, daemon: Daemon, *more: str) -> Watcher:
    source = f"frigate://127.0.0.1:{frigate.port}"
    watcher = watch(source, daemon.endpoint, "--mqtt", f"127.0.0.1:{broker.port}", *MAP, *more)
    until(lambda: "connected to the MQTT broker" in watcher.said())
    return watcher


def test_an_object_gets_the_label_that_its_answers_agree_on_once(
    shared_daemon: Daemon, watch: Open, open_frigate: Callable[..., FrigateServer], mosquitto: Broker,
    tmp_path: Path,
) -> None:  # fmt: skip
    frigate, broker = open_frigate(has_login=True), mosquitto()
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    login = ("--frigate-user", USER, "--frigate-password-file", str(password))
    watcher = began(watch, frigate, broker, shared_daemon, *login)
    with jetsel.Client(shared_daemon.endpoint) as client:
        wanted = client.classify(pictures(1, 1)[0]).label.split(",")[0]
    publisher = Publisher(broker)
    one, cat = track(frigate, "1.5-a", 1, 6), track(frigate, "1.5-c", 2, 3, label="cat")
    publisher.send("new", cat)
    grow(publisher, one, 1, 6)
    until(lambda: about(watcher, "1.5-a"))
    (event,) = [found for found in watcher.events("sub_label") if found["object"] == "1.5-a"]
    assert [label for label, _ in one.sub_labels] == [wanted]
    assert (event["sub_label"], event["camera"], event["family"]) == (wanted, "garden", "starter")
    assert event["answers"] >= 3
    assert event["score"] == pytest.approx(one.sub_labels[0][1])
    frigate.tokens.clear()  # a day has passed
    again = track(frigate, "1.6-a", 1, 6)
    grow(publisher, again, 1, 6)
    until(lambda: again.sub_labels)
    seen_once = track(frigate, "1.7-a", 3, 1)
    grow(publisher, seen_once, 3, 1)
    until(lambda: about(watcher, "1.7-a"))
    publisher.close()
    watcher.end()
    assert "only 1 images of it were answered" in watcher.events("no_sub_label")[0]["reason"]
    assert about(watcher, "1.5-c") == [], "no family is for cats"
    assert PASSWORD not in watcher.said() + watcher.out.read_text()
