"""`jetsel watch` and `jetsel review`: the options of a camera, and what is refused before anything is opened."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jetsel.addons.cameras import cameras
from jetsel.addons.cameras.config import Camera
from jetsel.cli.app import app

FRIGATE = ("watch", "frigate://127.0.0.1")
BROKER, MAP = ("--mqtt", "127.0.0.1"), ("--map", "bird=birds")


def test_each_setting_of_a_camera_is_an_option() -> None:
    done = CliRunner().invoke(app, ["watch", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    told = " ".join(done.output.replace("│", " ").split())
    for key in {*Camera.__struct_fields__} - {"source", "user", "password_file", "regions", "every_s"}:
        assert f"--{key.replace('_', '-')} " in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("watch", "--config", "empty.toml"), "there is no [[cameras]]: name a SOURCE"),
        (("watch", "rtsp://door", "--region", "1,2,3,4"), "its right half"),
        (("watch", "rtsp://door", "--mqtt", "a:b"), "HOST:PORT"),
        ((*FRIGATE, *BROKER), "--map bird=birds"),
        ((*FRIGATE, *MAP), "--mqtt HOST"),
        ((*FRIGATE, *BROKER, *MAP, "--topic-prefix", "a/#"), "mqtt.topic_prefix"),
        (("review", "/nowhere"), "`jetsel watch --save /nowhere` makes it"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_repair(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").write_text("[server]\n")
    done = CliRunner().invoke(app, words, env={"JETSEL_SOURCE": None})
    assert (done.exit_code, said in " ".join(done.output.split())) == (2, True), done.output


@pytest.fixture
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_own_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_cameras_begin_ends_them_in_order(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An exception there would end the interpreter beside threads in OpenCV, which then aborts the process."""
    ended = []

    class Beginning(cameras.Cameras):
        def __init__(self, *_: Any) -> None:
            os.kill(os.getpid(), number)

        def end(self) -> bool:
            ended.append(True)
            return True

    monkeypatch.setattr(cameras, "Cameras", Beginning)
    done = CliRunner().invoke(app, ["watch", str(tmp_path)])
    assert (done.exit_code, ended) == (0, [True]), done.output
