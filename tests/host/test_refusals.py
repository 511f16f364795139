"""Under each Python a request that cannot be met is refused with a code and a repair, and the next one is served."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.tiny import HEIGHT_PX, WIDTH_PX
from tests.host.models import CLASSES, WEIGHTS, images, load_request, tiny_file
from tests.host.started import StartedHost

INPUT_BYTES = 4 * 3 * HEIGHT_PX * WIDTH_PX


@pytest.fixture
def still_serves(host: StartedHost, tmp_path: Path) -> Iterator[int]:
    """A model that answers before the test and after it; its number."""
    (tmp_path / "other").mkdir()
    request = load_request(tiny_file(tmp_path / "other"))
    assert host.ask("load", **request)["ok"]
    yield request["model"]
    assert host.infer(request["model"], images(1))[0].shape == (1, CLASSES)


def poisoned(value: float) -> Callable[[Path], dict[str, Any]]:
    """A model one of whose weights is this number."""
    weights = WEIGHTS.copy()
    weights[3, 1] = value
    return lambda folder: load_request(tiny_file(folder, weights))


def damaged(damage: Callable[[bytes], bytes]) -> Callable[[Path], dict[str, Any]]:
    """A file that is no whole model, with the hash that it has."""

    def request(folder: Path) -> dict[str, Any]:
        path = tiny_file(folder)
        path.write_bytes(damage(path.read_bytes()))
        return load_request(path)

    return request


def changed(**changes: Any) -> Callable[[Path], dict[str, Any]]:
    """A request for a good model in which something is wrong."""
    return lambda folder: {**load_request(tiny_file(folder)), **changes}


@pytest.mark.parametrize(
    ("request_in", "code", "says"),
    [
        pytest.param(damaged(lambda _: b"no model at all"), "load-failed", "does not load", id="another kind of file"),
        pytest.param(damaged(lambda _: b""), "load-failed", "does not load", id="an empty file"),
        pytest.param(damaged(lambda whole: whole[:-1]), "load-failed", "does not load", id="the last byte lost"),
        pytest.param(changed(path="/nonexistent/x"), "load-failed", "cannot be read: No such file", id="no file"),
        pytest.param(changed(path="/"), "load-failed", "cannot be read: Is a directory", id="a folder"),
        pytest.param(changed(sha256="00" * 32), "mismatch", "not the file that it was", id="another hash"),
        pytest.param(
            changed(classes=CLASSES + 1), "bad-output", "answers 4 numbers .* 5", id="another number of labels"
        ),
        pytest.param(changed(input_px=[8, 8]), "infer-failed", "inference failed", id="another input"),
        pytest.param(poisoned(np.nan), "bad-output", "not finite", id="a weight that is no number"),
        pytest.param(poisoned(np.inf), "bad-output", "not finite", id="an infinite weight"),
        pytest.param(changed(model="one"), "bad-request", "model: 'one'", id="a name for a number"),
    ],
)
@pytest.mark.usefixtures("still_serves")
def test_a_model_of_no_use_is_refused_and_the_others_serve_on(
    host: StartedHost, tmp_path: Path, request_in: Callable[[Path], dict[str, Any]], code: str, says: str
) -> None:
    reply = host.ask("load", **request_in(tmp_path))
    assert (reply["ok"], reply["code"]) == (False, code)
    assert len(reply["message"].splitlines()) == 1
    assert re.search(says, reply["message"]), reply["message"]


def test_a_model_that_would_leave_less_than_the_reserve_is_refused(fresh: StartedHost, tmp_path: Path) -> None:
    assert fresh.hello(reserve_bytes=1 << 60)["ok"]
    reply = fresh.ask("load", **load_request(tiny_file(tmp_path)))
    assert (reply["ok"], reply["code"]) == (False, "memory-reserve")
    assert "lower [host] reserve_mb" in reply["message"]
    assert fresh.ask("ping")["ok"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"model": 0}, "bad-request", id="no such model"),
        pytest.param({"input": {"offset": 1 << 40, "shape": [1, 3, 2, 3]}}, "bad-request", id="outside"),
        pytest.param({"input": {"offset": 2, "shape": [1, 3, 2, 3]}}, "bad-request", id="between two numbers"),
        pytest.param({"input": {"offset": -4, "shape": [1, 3, 2, 3]}}, "bad-request", id="before the beginning"),
        pytest.param({"input": {"offset": 0, "shape": [1, 3, 0, 3]}}, "bad-request", id="an empty array"),
        pytest.param({"input": {"offset": 0, "shape": [1 << 40, 3, 2, 3]}}, "bad-request", id="more than is shared"),
        pytest.param({"input": {"offset": 0, "shape": [1, 3, 2, 2]}}, "infer-failed", id="another shape"),
        pytest.param({"output": {"offset": 1024, "bytes": 4 * CLASSES - 4}}, "bad-output", id="too little room"),
        pytest.param({"output": {"offset": 1 << 40, "bytes": 1024}}, "bad-request", id="room outside"),
        pytest.param({"memory_bytes": 1 << 40}, "bad-request", id="more memory than there is"),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_the_next_is_served(
    host: StartedHost, still_serves: int, changes: dict[str, Any], code: str
) -> None:
    good = {"model": still_serves, "input": {"offset": 0, "shape": [1, 3, HEIGHT_PX, WIDTH_PX]}}
    good["output"] = {"offset": 1024, "bytes": 1024}
    reply = host.ask("infer", **{**good, **changes})
    assert (reply["ok"], reply["code"]) == (False, code), reply


def test_nothing_is_written_outside_of_the_room_that_was_given(host: StartedHost, still_serves: int) -> None:
    batch = images(1)
    region = host.memory.take(4096)
    whole = region.view(region.offset, (1024,))
    whole[:] = 7.0
    region.view(region.offset, batch.shape)[:] = batch
    begin, end = 256, 256 + CLASSES + batch.size  # in numbers
    output = {"offset": region.offset + 4 * begin, "bytes": 4 * (end - begin)}
    place = {"offset": region.offset, "shape": batch.shape}
    assert host.ask("infer", model=still_serves, input=place, output=output)["ok"]
    assert (whole[batch.size : begin] == 7.0).all()
    assert (whole[end:] == 7.0).all()
    assert (whole[begin:end] != 7.0).all()
    host.memory.give_back(region)


@pytest.mark.parametrize("kind", ["load", "unload", "infer", "build"])
def test_hello_comes_first(fresh: StartedHost, kind: str) -> None:
    reply = fresh.ask(kind, model=1)
    assert (reply["ok"], reply["code"]) == (False, "bad-request")
    assert fresh.hello()["ok"]


@pytest.mark.parametrize("kind", ["dance", "", None, 7, ["hello"], {"do": "hello"}])
def test_an_unknown_kind_is_refused(host: StartedHost, kind: Any) -> None:
    reply = host.ask(kind)
    assert (reply["ok"], reply["code"]) == (False, "bad-request"), reply
    assert "none of build, hello, infer, load, ping, quit, unload" in reply["message"]


def test_hello_is_said_once(host: StartedHost) -> None:
    reply = host.hello()
    assert (reply["ok"], reply["code"]) == (False, "bad-request")


def test_this_backend_builds_nothing(host: StartedHost) -> None:
    reply = host.ask("build", onnx="x.onnx", plan="x.plan")
    assert (reply["ok"], reply["code"]) == (False, "unsupported")


@pytest.mark.parametrize(
    "changes", [{"memory_bytes": 1 << 40}, {"memory_fd": 10_000}, {"memory_fd": "3"}, {"reserve_bytes": -1}]
)
def test_a_hello_that_is_wrong_is_refused(fresh: StartedHost, changes: dict[str, Any]) -> None:
    reply = fresh.hello(**changes)
    assert not reply["ok"]
    assert fresh.ask("ping")["ok"]
