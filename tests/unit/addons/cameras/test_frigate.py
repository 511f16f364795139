"""Frigate's API and messages, and its objects: none is lost, named over, late or asked about for ever."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import paho.mqtt.client as paho
import pytest

from jetsel.addons.cameras.frigate import FrigateApi, FrigateError, TrackedObject, TrackedObjectMessage
from jetsel.addons.cameras.frigate_watch import FrigateWatch, Tracked
from jetsel.addons.cameras.mqtt import ServerLogin
from jetsel.addons.cameras.settings import WatchContext
from jetsel.base.errors import BusyError
from tests.system.watch.frigate_server import FrigateObject, FrigateServer
from tests.unit.addons.cameras.answers import answer


@pytest.fixture
def frigate() -> Iterator[FrigateServer]:
    server = FrigateServer()
    yield server
    server.close()


def api_of(server: FrigateServer) -> FrigateApi:
    return FrigateApi(ServerLogin("127.0.0.1", server.port), 60.0)


@pytest.mark.parametrize(
    "body",
    [b"", b'[{"id":"\xff"}]', b"[" * 100_000, b'{"id":1}', b'[{"id":"a","camera":"c","label":"l","start_time":1e999}]',
     b'[{"id":"\\ud800","camera":"c","label":"l"}]', b"null"],
    ids=["nothing", "not UTF-8", "too deep", "odd types", "huge number", "half a letter", "null"],
)  # fmt: skip
def test_a_reply_that_cannot_be_read_is_tried_again(frigate: FrigateServer, body: bytes) -> None:
    frigate.answers = {"events": (200, body), "1-a": (200, body)}
    for call in (lambda: api_of(frigate).list_newest(["bird"], 9), lambda: api_of(frigate).read_object("1-a")):
        with pytest.raises(FrigateError, match="cannot be read") as error:
            call()
        assert error.value.retry


@pytest.mark.parametrize(
    ("status", "retry", "words"),
    [(404, True, ""), (503, True, ""), (429, True, ""), (400, False, ""), (403, False, "role admin"),
     (301, False, "address that it redirects to")],
)  # fmt: skip
def test_a_status_that_passes_is_tried_again(frigate: FrigateServer, status: int, retry: bool, words: str) -> None:
    frigate.answers = {"sub_label": (status, b"no such event")}
    with pytest.raises(FrigateError, match=f"HTTP {status}.*{words}.*no such event") as error:
        api_of(frigate).set_sub_label("1-a", "jay", 0.9)
    assert error.value.retry is retry


def test_the_newest_objects_of_some_labels_come_first(frigate: FrigateServer) -> None:
    for number, label in enumerate(("bird", "cat", "bird", "bird")):
        frigate.objects[f"{number}-a"] = FrigateObject(f"{number}-a", label, start_time=float(number))
    assert [one.id for one in api_of(frigate).list_newest(["bird", "dog"], 2)] == ["3-a", "2-a"]
    assert api_of(frigate).read_object("9-a") is None


def test_a_message_of_version_0_18_is_read() -> None:
    after = {
        "id": "1.5-a", "camera": "garden", "label": "bird", "sub_label": ["Anna", 0.9], "start_time": 1.5,
        "end_time": None, "false_positive": False, "score": 0.8, "box": [1, 2, 3, 4], "attributes": {},
        "current_attributes": [], "path_data": [[[0.5, 0.5], 1.6]], "recognized_license_plate": None,
        "velocity_angle": 0, "current_estimated_speed": 0,
    }  # fmt: skip
    sent = json.dumps({"type": "update", "before": {}, "after": after})
    message = msgspec.json.decode(sent, type=TrackedObjectMessage)
    assert (message.type, message.after.id, message.after.name) == ("update", "1.5-a", "Anna")


class Api:
    """Frigate's API with replies that a test sets; each snapshot is another image."""

    name = "frigate://x"

    def __init__(self) -> None:
        self.listed: list[TrackedObject] = []
        self.states: dict[str, TrackedObject] = {}
        self.faults: list[Exception] = []  # of the next calls of set_sub_label
        self.written: list[tuple[str, str]] = []
        self.n_snapshots = 0
        self.meanwhile: Callable[[], None] = lambda: None  # what happens while a snapshot is on its way

    def list_newest(self, labels: list[str], limit: int) -> list[TrackedObject]:
        assert labels == ["bird"]
        return self.listed[:limit]

    def read_object(self, event_id: str) -> TrackedObject | None:
        return self.states.get(event_id)

    def snapshot(self, event_id: str) -> bytes:
        self.meanwhile()
        self.n_snapshots += 1
        return b"%d" % self.n_snapshots

    def set_sub_label(self, event_id: str, sub_label: str, score: float) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.written.append((event_id, sub_label))


class Watched:
    """A watch of birds, without a broker and a daemon: the daemon answers `jay`."""

    def __init__(self, api: Any) -> None:
        self.api, self.events, self.told = api, list[dict[str, Any]](), list[str]()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            broker = ServerLogin("127.0.0.1", one.getsockname()[1])  # nobody listens there
        context = WatchContext(None, 1000.0, 16.0, broker, self.events.append, self.told.append)
        self.watch = FrigateWatch(api, context, broker, {"bird": "birds"}, {})
        jays = SimpleNamespace(classify=lambda *_, **__: answer("jay"), close=lambda: None)
        self.watch._clients = [jays]

    def send(self, kind: str, event_id: str = "1-a", **more: Any) -> None:
        after = {"id": event_id, "camera": "garden", "label": "bird", "start_time": 1000.0, "false_positive": False}
        self.watch._received(json.dumps({"type": kind, "before": {}, "after": after | more}).encode())

    def step(self, event_id: str = "1-a") -> Tracked | None:
        """Ask once about an object, and return it if it is not done."""
        one = self.watch._objects.get(event_id)
        if one is not None:
            self.watch._process(one)
        return self.watch._objects.get(event_id)

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.events if event["event"] == "no_sub_label"]


@pytest.fixture
def birds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """A watch whose MQTT client never tries to connect: that takes a second to end."""
    monkeypatch.setattr(paho.Client, "loop_start", lambda _: None)
    watched = Watched(Api())
    yield watched
    watched.watch.close()


def bird(event_id: str, start_time: float, **more: Any) -> TrackedObject:
    return TrackedObject(event_id, "garden", "bird", start_time, **more)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [bird("1-a", 50.0)]),
        ([bird("0-a", 40.0)], [bird("1-a", 50.0), bird("0-a", 40.0)]),
        ([bird("0-a", 4e9)], [bird("0-a", 4e9), bird("1-a", 50.0)]),
        ([bird("0-a", 90.0), bird("0-b", 80.0)], [bird("0-a", 90.0), bird("0-b", 80.0), bird("1-a", 50.0)]),
    ],
    ids=["the first of all", "after another", "after one of next century", "after the clock was set back"],
)
def test_what_began_while_the_broker_was_away_is_found_whatever_the_clock_says(
    birds: Watched, before: list[TrackedObject], after: list[TrackedObject]
) -> None:
    birds.api.listed = before
    birds.watch._catch_up()
    assert birds.watch._objects == {}, "what was there before the watch is none of its business"
    birds.api.listed = after
    birds.watch._catch_up()
    assert list(birds.watch._objects) == ["1-a"]


@pytest.mark.parametrize("kind", ["end", "update"])
def test_a_message_that_comes_while_an_old_object_is_asked_about_makes_it_due(birds: Watched, kind: str) -> None:
    birds.send("new")
    birds.watch._objects["1-a"].began_s -= 120.0
    birds.api.meanwhile = lambda: birds.send(kind)
    one = birds.step()
    assert one.due_s <= time.monotonic()
    assert (one.ended_s is not None) is (kind == "end")
    birds.api.meanwhile = lambda: None
    birds.step()
    assert birds.reasons() == (["only 2 images of it were answered, and 3 are needed"] if kind == "end" else [])


@pytest.mark.parametrize(
    ("is_message", "state", "reason"),
    [(True, {"sub_label": ["Amazon", 0.9]}, "sub-label Amazon"), (False, {"sub_label": "Anna"}, "sub-label Anna"),
     (True, {"false_positive": True}, "false positive"), (False, {"false_positive": True}, "false positive")],
    ids=["named in a message", "named in the database", "false by a message", "false in the database"],
)  # fmt: skip
def test_what_frigate_named_or_withdrew_gets_no_sub_label(
    birds: Watched, is_message: bool, state: dict[str, Any], reason: str
) -> None:
    birds.send("new")
    if is_message:
        birds.send("update", **state)
    else:
        birds.api.states["1-a"] = bird("1-a", 1000.0, **state)
    for _ in range(3):
        birds.step()
    assert birds.api.written == []
    (found,) = birds.reasons()
    assert reason in found


def test_our_own_sub_label_whose_reply_was_lost_is_written_again(birds: Watched) -> None:
    birds.api.faults = [FrigateError("timed out", retry=True)]
    birds.send("new")
    for _ in range(3):
        birds.step()
    birds.send("update", sub_label=["jay", 0.9])
    birds.step()
    assert birds.api.written == [("1-a", "jay")]
    assert birds.reasons() == []


def test_a_snapshot_that_fails_and_a_daemon_that_is_away_are_told_once_and_tried_again(birds: Watched) -> None:
    def breaks() -> None:
        raise FrigateError("the snapshot: HTTP 500", retry=True)

    def is_away(*_: Any, **__: Any) -> None:
        raise BusyError("no daemon answers")

    jays, birds.api.meanwhile = birds.watch._clients, breaks
    birds.send("new")
    birds.step()
    birds.api.meanwhile = lambda: None
    birds.watch._clients = [SimpleNamespace(classify=is_away)]
    birds.send("new", "2-a")
    for _ in range(2):
        birds.step("2-a")
    birds.watch._clients = jays
    for _ in range(3):
        birds.step()
        birds.step("2-a")
    assert birds.told == ["1-a: the snapshot: HTTP 500", "2-a: no daemon answers"]
    assert (birds.api.written, birds.reasons()) == ([("1-a", "jay"), ("2-a", "jay")], [])


def test_a_sub_label_that_frigate_cannot_take_yet_is_written_later_until_a_minute_after_its_end(birds: Watched) -> None:
    fault = FrigateError("the sub-label: HTTP 404", retry=True)
    birds.api.faults = [fault] * 9
    for event_id in ("1-a", "2-a"):
        birds.send("new", event_id)
        for _ in range(4):
            one = birds.step(event_id)
    assert one.ended_s is not None
    one.ended_s -= 61.0
    birds.step("2-a")
    assert birds.reasons() == ["the sub-label: HTTP 404"]
    birds.api.faults = []
    birds.step("1-a")
    assert birds.api.written == [("1-a", "jay")]


@pytest.mark.parametrize(
    "payload",
    [b'{"x":' + b"[" * 3000, b"[" * 100_000, b"\xff", b"", b"[]", b'{"type":"new","after":{"id":[]}}',
     b'{"type":"new","after":null}'],
    ids=["deep field", "deep", "not UTF-8", "nothing", "list", "odd type", "null"],
)  # fmt: skip
def test_no_message_ends_the_thread_that_receives(birds: Watched, payload: bytes) -> None:
    for _ in range(2):
        birds.watch._messages._on_mqtt_message(None, None, SimpleNamespace(topic="frigate/events", payload=payload))  # type: ignore[arg-type]
    birds.send("new")
    assert list(birds.watch._objects) == ["1-a"]
    assert sum("cannot be read" in words for words in birds.told) == 1


def test_at_its_end_each_undecided_object_has_its_reason(birds: Watched) -> None:
    birds.send("new")
    birds.step()
    birds.send("new", "2-a")
    birds.watch.close()
    assert birds.reasons() == [
        f"jetsel watch was stopped: only {n} images of it were answered, and 3 are needed" for n in (1, 0)
    ]
