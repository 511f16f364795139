"""Cameras of the configuration: one process, each by itself, read again by a signal, and seen in `status`."""

import signal
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

import jetsel
from jetsel.gateway import camera_states
from jetsel.gateway.camera_states import CameraState
from jetsel.gateway.metrics import metrics
from tests.system.daemons import Daemon, Start, drawn
from tests.system.watch.conftest import Open
from tests.system.watch.watchers import Watcher, film
from tests.waiting import until

Begin = Callable[[str, str], Watcher]


@pytest.fixture
def watch_configured(watch: Open, tmp_path: Path) -> Begin:
    """Start a watcher of what a configuration names."""

    def begin(text: str, endpoint: str) -> Watcher:
        config = tmp_path / "jetsel.toml"
        config.write_text(text)
        return watch(None, endpoint, "--config", str(config), env={"XDG_RUNTIME_DIR": str(tmp_path)})

    return begin


def camera(name: str, source: Path, *more: str) -> str:
    return "\n".join(["[[cameras]]", f'name = "{name}"', f'source = "{source}"', "stay = 1", *more, ""])


def put(folder: Path, seed: int) -> None:
    folder.mkdir(exist_ok=True)
    cv2.imwrite(str(folder / "new.part.png"), drawn(seed))
    (folder / "new.part.png").rename(folder / f"{seed}.png")


def of(watcher: Watcher, name: str, region: str | None = None) -> list[str]:
    """The labels of a camera so far."""
    found = [event for event in watcher.events("label") if (event["source"], event.get("region")) == (name, region)]
    return [event["label"] for event in found]


def seen(runtime: Path) -> dict[tuple[str, str | None], CameraState]:
    return {(one.name, one.region): one for one in camera_states.read({"XDG_RUNTIME_DIR": str(runtime)})}


def test_each_camera_and_region_has_its_label_and_stands_in_the_file_and_the_metrics(
    start: Start, watch_configured: Begin, tmp_path: Path
) -> None:
    daemon, door, yard = start(), tmp_path / "door", tmp_path / "yard"
    put(door, 1)
    yard.mkdir()
    cv2.imwrite(str(yard / "two.png"), np.hstack([drawn(2), drawn(3)]))
    regions = 'regions = { left = "0,0,0.5,1", right = "0.5,0,0.5,1" }'
    watcher = watch_configured(camera("door", door) + camera("yard", yard, regions), daemon.endpoint)
    with jetsel.Client(daemon.endpoint) as client:
        wanted = [client.classify(drawn(seed)).label for seed in (1, 2, 3)]
    until(lambda: [*of(watcher, "door"), *of(watcher, "yard", "left"), *of(watcher, "yard", "right")] == wanted)
    until(lambda: [one.label for one in seen(tmp_path).values()] == wanted)
    names = [("door", ""), ("yard", "left"), ("yard", "right")]
    found = seen(tmp_path)
    assert list(found) == [("door", None), ("yard", "left"), ("yard", "right")]
    first = found["door", None]
    assert (first.connected, first.frames_read, first.frames_asked, first.label_changes) == (True, 1, 1, 1)
    up = {one.name: one for one in metrics(None, list(found.values()))}["jetsel_camera_up"]
    assert [(list(one.labels.values()), one.value) for one in up.samples] == [([*key], 1.0) for key in names]
    watcher.process.send_signal(signal.SIGTERM)
    assert watcher.process.wait(60) == 0
    assert seen(tmp_path) == {}
    assert {event["source"] for event in watcher.events("summary")} == {"door", "yard"}


def test_a_reload_keeps_what_is_as_before_and_refuses_what_cannot_be_used(
    shared_daemon: Daemon, watch_configured: Begin, tmp_path: Path
) -> None:
    for number, name in enumerate(("a", "b", "c")):
        put(tmp_path / name, number)
    cameras = {name: camera(name, tmp_path / name) for name in ("a", "b", "c")}
    watcher = watch_configured(cameras["a"] + cameras["b"], shared_daemon.endpoint)
    until(lambda: of(watcher, "a") and of(watcher, "b"))
    config = tmp_path / "jetsel.toml"
    config.write_text(cameras["a"] + camera("b", tmp_path / "b", "every_s = 0.5") + cameras["c"])
    watcher.process.send_signal(signal.SIGHUP)
    until(lambda: "changed cameras: b, c" in watcher.said())
    until(lambda: of(watcher, "c") and len(of(watcher, "b")) == 2)
    config.write_text(cameras["a"] + camera("d", Path("rtps:/door/stream1")))
    watcher.process.send_signal(signal.SIGHUP)
    until(lambda: "the cameras stay as they were: camera d:" in watcher.said())
    put(tmp_path / "a", 7)
    until(lambda: len(of(watcher, "a")) == 2)
    assert [event["source"] for event in watcher.events("summary")] == ["b"], "the others went on"


def test_a_camera_with_a_mistake_a_folder_to_come_and_frames_too_large_cost_the_others_nothing(
    shared_daemon: Daemon, watch_configured: Begin, tmp_path: Path
) -> None:
    for name in ("good", "bad"):
        put(tmp_path / name, 1)
    film(tmp_path / "large.avi", [drawn(0, 200, 200)], 5)
    text = camera("late", tmp_path / "usb" / "door") + camera("large", tmp_path / "large.avi")
    text += camera("bad", tmp_path / "bad", 'family = "dogs"') + camera("good", tmp_path / "good")
    watcher = watch_configured(text + "[server]\nmax_image_megapixels = 0.03\n", shared_daemon.endpoint)
    for words in (
        "late: disconnected: there is no such file",
        "large: disconnected: the image has 200 x 200",
        "bad: no family 'dogs'",
    ):
        until(lambda words=words: words in watcher.said())  # type: ignore[misc]
    until(lambda: of(watcher, "good"))
    (tmp_path / "usb").mkdir()
    put(tmp_path / "usb" / "door", 2)
    until(lambda: of(watcher, "late"))
    put(tmp_path / "good", 5)
    until(lambda: len(of(watcher, "good")) == 2)
    watcher.process.send_signal(signal.SIGTERM)
    assert watcher.process.wait(60) == 0
    assert {event["source"] for event in watcher.events("summary")} == {"late", "large", "bad", "good"}
    assert of(watcher, "bad") == []
