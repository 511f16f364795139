"""Frigate's API and messages: each odd reply is a FrigateError, and what may pass is tried again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from jetsel.addons.cameras.frigate import FrigateAddress, FrigateApi, FrigateError, read_message
from tests.system.watch.frigate_server import FrigateObject, FrigateServer


@pytest.fixture
def frigate() -> Iterator[FrigateServer]:
    server = FrigateServer()
    yield server
    server.close()


def api_of(server: FrigateServer) -> FrigateApi:
    return FrigateApi(FrigateAddress("127.0.0.1", server.port, tls=False), 60.0)


@pytest.mark.parametrize(
    "body",
    [b"", b'[{"id":"\xff"}]', b"[" * 100_000, b'{"id":1}', b'[{"id":"a","camera":"c","label":"l","start_time":1e999}]',
     b'[{"id":"\\ud800","camera":"c","label":"l"}]', b"null"],
    ids=["nothing", "not UTF-8", "too deep", "odd types", "huge number", "half a letter", "null"],
)  # fmt: skip
def test_a_reply_that_cannot_be_read_is_tried_again(frigate: FrigateServer, body: bytes) -> None:
    frigate.answers = {"events": (200, body), "1-a": (200, body)}
    for call in (lambda: api_of(frigate).newest(["bird"], 9), lambda: api_of(frigate).look_up("1-a")):
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
    assert [one.id for one in api_of(frigate).newest(["bird", "dog"], 2)] == ["3-a", "2-a"]
    assert api_of(frigate).look_up("9-a") is None


def test_a_message_of_version_0_18_is_read() -> None:
    after = {
        "id": "1.5-a", "camera": "garden", "label": "bird", "sub_label": ["Anna", 0.9], "start_time": 1.5,
        "end_time": None, "false_positive": False, "score": 0.8, "box": [1, 2, 3, 4], "attributes": {},
        "current_attributes": [], "path_data": [[[0.5, 0.5], 1.6]], "recognized_license_plate": None,
        "velocity_angle": 0, "current_estimated_speed": 0,
    }  # fmt: skip
    message = read_message(json.dumps({"type": "update", "before": {}, "after": after}).encode())
    assert (message.type, message.after.id, message.after.name) == ("update", "1.5-a", "Anna")
