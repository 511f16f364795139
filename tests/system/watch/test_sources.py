"""`jetsel watch` with files, folders and a camera over HTTP, beside a daemon that also goes away and reloads."""

import http.server
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import jetsel
from tests.system.daemons import Connect, Daemon, Start, drawn, encoded
from tests.system.watch.conftest import Open
from tests.system.watch.watchers import film, frames
from tests.waiting import until

PICTURES = [drawn(seed) for seed in (0, 1, 2)]


@pytest.mark.slow
def test_a_file_plays_as_a_camera_and_each_label_that_stays_is_an_event(
    shared_daemon: Daemon, watch: Open, tmp_path: Path
) -> None:
    video = film(tmp_path / "day.avi", PICTURES, 60)
    shown = frames(video)
    watcher = watch(video, shared_daemon.endpoint, "--name", "door")
    assert watcher.process.wait(60) == 0, watcher.said()
    with jetsel.Client(shared_daemon.endpoint) as client:
        answers = [client.classify(shown[number]) for number in (0, 60, 120)]
    events = watcher.events("label")
    assert [(one["label"], one["id"]) for one in events] == [(answer.label, answer.wnid) for answer in answers]
    assert [one["previous"] for one in events] == [None, answers[0].label, answers[1].label]
    for event, answer in zip(events, answers, strict=True):
        assert event["probability"] == pytest.approx(answer.probability, abs=0.02)  # which frame settled it, is open
        assert (event["source"], event["family"]) == ("door", answer.family)
        assert event["since"] <= event["time"]
    summary = watcher.events("summary")[0]
    assert summary["frames_read"] == 180
    assert summary["frames_asked"] + summary["frames_skipped"] <= 180
    assert summary["label_changes"] == 3
    assert summary["saved_ms"] > 0
    assert summary["saved_mj"] is None  # nothing is metered
    assert "unknown amount of energy" in watcher.said()


class Camera(http.server.BaseHTTPRequestHandler):
    """Shows one picture again and again as cameras do over HTTP (multipart/x-mixed-replace)."""

    shows = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        data = encoded(PICTURES[0])
        head = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(data)
        while self.shows.wait(60):
            try:
                self.wfile.write(head + data + b"\r\n")
            except OSError:
                return  # the watcher left

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def camera() -> Iterator[str]:
    Camera.shows.set()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://me:secret@127.0.0.1:{server.server_address[1]}/video.mjpg"
    Camera.shows.set()
    server.shutdown()
    server.server_close()


def test_a_camera_that_hangs_does_not_keep_it_from_ending(shared_daemon: Daemon, watch: Open, camera: str) -> None:
    watcher = watch(camera, shared_daemon.endpoint, "--stall-s", "600")
    watcher.wait_for("label")
    Camera.shows.clear()
    assert watcher.end()["frames_read"] > 0
    assert "secret" not in watcher.said() + watcher.out.read_text()


def test_it_ends_when_nobody_reads_its_events(shared_daemon: Daemon, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jetsel", "watch", str(tmp_path), "--endpoint", shared_daemon.endpoint]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert '"daemon"' in process.stdout.readline()
        process.stdout.close()
        (tmp_path / "1.jpg").write_bytes(encoded(PICTURES[0]))
        assert "Traceback" not in process.stderr.read()
        assert process.wait(60) == 1


def test_a_source_may_stand_in_the_environment_and_events_that_cannot_be_written_end_nothing(
    shared_daemon: Daemon, tmp_path: Path
) -> None:
    video = film(tmp_path / "day.avi", PICTURES, 5)
    command = [sys.executable, "-m", "jetsel", "watch", "--endpoint", shared_daemon.endpoint]
    environment = {**os.environ, "JETSEL_SOURCE": str(video)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, timeout=120, check=False)
    assert b"an event cannot be written: No space left" in done.stderr
    assert b"15 frames read" in done.stderr


@pytest.mark.slow
def test_it_begins_without_a_daemon_and_one_that_reloads_hangs_or_is_killed_is_told_and_waited_for(
    start: Start, connect: Connect, watch: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    watcher = watch(folder, f"ipc://{tmp_path}/jetsel.sock", "--stay", "1")
    assert watcher.wait_for("daemon")["state"] == "away"
    daemon = start()
    assert watcher.wait_for("daemon", 2)["state"] == "back", "seen without any question"
    (folder / "1.png").write_bytes(encoded(drawn(0), ".png"))
    watcher.wait_for("label")
    daemon.config.write_text(daemon.config.read_text() + '[models]\nonly = ["xs", "s"]\n')
    assert connect(daemon).ask({"type": "reload"})["type"] == "reloaded"
    assert watcher.wait_for("daemon", 3)["state"] == "reloaded"
    (folder / "2.png").write_bytes(encoded(drawn(0), ".png"))  # the same scene is asked about again
    until(lambda: connect(daemon).status()["requests"].get("ok") == 2)
    daemon.process.send_signal(signal.SIGSTOP)
    assert watcher.wait_for("daemon", 4)["state"] == "away"
    daemon.process.send_signal(signal.SIGCONT)
    assert watcher.wait_for("daemon", 5)["state"] == "back"
    daemon.stop(signal.SIGKILL)
    assert watcher.wait_for("daemon", 6)["state"] == "away"
    for number in (1, 2):  # nobody can be asked about them; the newest is asked about when somebody can
        (folder / f"{number + 2}.png").write_bytes(encoded(drawn(number), ".png"))
    start()
    assert watcher.wait_for("daemon", 7)["reason"] == "it was restarted"
    with jetsel.Client(daemon.endpoint) as client:
        assert watcher.wait_for("label", 2)["label"] == client.classify(drawn(2)).label
    assert watcher.end()["label_changes"] == 2
