"""Errors of the command line: their exit status, and as JSON."""

import json

import pytest
from typer.testing import CliRunner

from jetsel.cli.app import app


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("calibration", "list", "--family", "dogs"), "unknown-family", 1),
        (("status", "--endpoint", "ipc:///nonexistent/jetsel.sock"), "no-daemon", 1),
        (("calibration", "list", "--config", "/nonexistent.toml"), "config", 2),
        (("calibrate", "/dev/null/none"), "usage", 2),
        (("keys",), "usage", 2),
    ],
)
def test_with_json_an_error_is_one_object_and_the_status_stays(words: tuple[str, ...], code: str, status: int) -> None:
    done = CliRunner().invoke(app, [*words, "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, set(found), found["error"]) == (status, {"error", "message", "retry"}, code)
    assert found["retry"] is (code == "no-daemon")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("models", "add", "net.onnx", "--labels", "", "--mean", "0,0,0"), "--labels is empty"),
        (("models", "add", "net.onnx", "--labels", "--mean", "0,0,0"), "--labels has no value, --mean follows it"),
        (("models", "add", "net.onnx", "--labels", "--mean=0,0,0"), "--labels has no value, --mean follows it"),
        (("models", "train-head", "images", "--family="), "--family is empty"),
        (("models", "train-head", ""), "an argument is empty"),
        (("status", "--json", " "), "an argument is empty"),
        (("watch", "rtsp://camera", "--mqtt", ""), "--mqtt is empty"),
        (("calibrate", "images", "-c", "--json"), "-c has no value, --json follows it"),
    ],
)
def test_an_empty_value_and_an_option_taken_for_one_are_named(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert said in done.output
