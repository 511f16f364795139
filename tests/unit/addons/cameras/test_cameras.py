"""Cameras of one process: their names in topics, their ends, and what breaks in one of them."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jetsel import wire
from jetsel.addons.cameras import cameras as module
from jetsel.addons.cameras.cameras import Cameras
from jetsel.addons.cameras.config import Camera
from jetsel.addons.cameras.mqtt import ServerLogin
from jetsel.addons.cameras.region import RegionView
from jetsel.addons.cameras.settings import WatchContext, WatchSettings
from jetsel.addons.cameras.watch import Watch
from jetsel.base.errors import ConfigError
from tests.system.daemons import drawn, encoded
from tests.unit.client.peer import Peer, Seen, answer, fail, status
from tests.waiting import until

SIDES = {"left": "0,0,0.5,1", "right": "0.5,0,0.5,1"}


def context(endpoint: str = "ipc:///nobody", broker: ServerLogin | None = None, **more: Any) -> WatchContext:
    return WatchContext(endpoint, 5000.0, 16.0, broker, lambda _: None, lambda _: None, **more)


def topics(camera: Camera, **more: Any) -> list[str]:
    return list(WatchSettings(camera, context(broker=ServerLogin("127.0.0.1", 1), **more)).topics.values())


def test_names_of_plain_ascii_keep_their_topics_and_others_never_share_one() -> None:
    door = "rtsp://door/1"
    assert topics(Camera("front door", door)) == ["front_door"]
    assert topics(Camera("front door", door, regions={"left side": "0,0,1,1"})) == ["front_door_left_side"]
    assert topics(Camera("unused", door), has_name=False) == [f"{socket.gethostname()}_rtsp_door_1".replace(".", "_")]
    assert topics(Camera("T\u00fcr", door)) == topics(Camera("Tu\u0308r", door)), "in both forms of Unicode"
    assert re.fullmatch(r"T_r_[0-9a-f]{8}", topics(Camera("T\u00fcr", door))[0])
    names = ["\u524d\u9580", "\u88cf\u53e3", "T\u00fcr", "T\u00e4r", "T_r", "\u0413\u0430\u0440\u0430\u0436"]
    pairs = [(name, region) for name in names for region in (None, *names)]
    found = [topics(Camera(name, door, regions={region: "0,0,1,1"} if region else {})) for name, region in pairs]
    assert len({topic for one in found for topic in one}) == len(pairs)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Camera("front door", "rtsp://a"), Camera("front_door", "rtsp://b")),
        (Camera("door", "rtsp://a", regions={"gate": "0,0,1,1"}), Camera("door_gate", "rtsp://b")),
        (Camera("a", "rtsp://a"), Camera("door", "rtsp://b", regions={"left side": "0,0,1,1", "left_side": "0,0,1,1"})),
    ],
)
def test_cameras_that_would_share_a_topic_are_refused_at_the_start_and_at_a_reload(one: Camera, other: Camera) -> None:
    shared = context(broker=ServerLogin("127.0.0.1", 1))
    with pytest.raises(ConfigError, match=r"jetsel/\w+: rename one"):
        Cameras([one, other], shared)
    running = Cameras([], shared)
    with pytest.raises(ConfigError, match="rename one"):
        running.change_to([one, other], shared)
    assert running.end()
    Cameras._check([one, other], context())  # without a broker nothing is shared


def test_a_url_of_which_topics_would_show_only_a_part_needs_a_name() -> None:
    broker = ServerLogin("localhost", 1883)
    for url in ("rtsp://nvr/cam?channel=1", "rtsp://nvr/user=a_password=x_channel=1"):
        with pytest.raises(ConfigError, match="name it with --name"):
            WatchSettings(Camera(url, url), context(broker=broker, has_name=False))
        assert WatchSettings(Camera("gate", url), context(broker=broker)).topics == {None: "gate"}
    WatchSettings(Camera("a", "rtsp://me:secret@nvr/cam"), context(broker=broker, has_name=False))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "1.png").write_bytes(encoded(drawn(), ".png"))
    return folder


Answers = Callable[[int], str | None]
Watched = Callable[[Camera, Answers], tuple[Cameras, list[dict[str, Any]], list[str]]]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Begin to watch a camera beside a daemon that answers its n-th question with a label, or None: it is busy."""
    ends: list[Callable[[], object]] = []

    def begin(camera: Camera, answers: Answers) -> tuple[Cameras, list[dict[str, Any]], list[str]]:
        def script(seen: list[Seen]) -> Sequence[wire.Reply]:
            if isinstance(seen[-1].request, wire.Status):
                return [status(seen[-1])]
            if not isinstance(seen[-1].request, wire.Classify):
                return [fail(seen[-1], "unknown-kind", retry=False)]
            label = answers(sum(isinstance(one.request, wire.Classify) for one in seen))
            if label is None:
                return [fail(seen[-1], "busy", retry=True)]
            return [replace(answer(seen[-1], label), wnid=label)]

        peer = Peer(tmp_path / "s", script).__enter__()
        events: list[dict[str, Any]] = []
        told: list[str] = []
        running = Cameras([camera], WatchContext(peer.endpoint, 5000.0, 16.0, None, events.append, told.append))
        ends.extend([running.end, peer.__exit__])
        return running, events, told

    yield begin
    for end in ends:
        end()


def labels(events: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    return [(event.get("region"), event["label"]) for event in events if event["event"] == "label"]


def test_a_frame_is_one_vote_in_each_region_also_if_one_is_refused_for_a_while(folder: Path, watched: Watched) -> None:
    asked: list[int] = []

    def answers(n: int) -> str | None:
        asked.append(n)
        return None if 2 <= n <= 5 else "cat"

    camera = Camera("door", str(folder), stay=2, gate="none", regions=SIDES)
    _, events, _ = watched(camera, answers)
    until(lambda: len(asked) == 6)  # left, four times right in vain, right
    (folder / "2.png").write_bytes(encoded(drawn(1), ".png"))
    until(lambda: len(labels(events)) == 2)
    assert len(asked) == 8, "each region had two votes for its two frames"
    assert labels(events) == [("left", "cat"), ("right", "cat")]


def test_a_camera_that_breaks_is_not_available_says_why_and_is_tried_again(
    folder: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AGAIN_S", 0.05)
    skips, is_broken, available = RegionView.skips, threading.Event(), list[bool]()
    is_broken.set()
    set_available = Watch._set_available

    def recorded(watch: Watch, which: str, is_available: bool) -> None:
        set_available(watch, which, is_available)
        available.append(all(watch._available.values()))

    monkeypatch.setattr(Watch, "_set_available", recorded)
    monkeypatch.setattr(
        RegionView, "skips", lambda view, *what: next(iter([])) if is_broken.is_set() else skips(view, *what)
    )
    running, events, told = watched(Camera("door", str(folder), stay=1, gate="none"), lambda n: f"label {n}")
    until(lambda: "door: StopIteration(); next try in 0.05 s" in told)
    (one,) = running._running.values()
    until(lambda: [(state.connected, state.reason) for state in one.watch.states()] == [(False, "StopIteration()")])
    assert False in available
    is_broken.clear()
    (folder / "2.png").write_bytes(encoded(drawn(1), ".png"))
    until(lambda: labels(events))
    assert one.watch.states()[0].connected
    assert available[-1]
