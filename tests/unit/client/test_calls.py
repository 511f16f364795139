"""What both clients do alike against a scripted peer: requests, results, refusals, retries, limits, and frame two."""

import contextlib
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs
from PIL import Image

from jetsel import wire
from jetsel.base import errors
from jetsel.base.errors import BadImageError, BusyError, ImageTooLargeError, LoadingError, NoDaemonError, NoReplyError
from jetsel.client.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, MOST_LOSSES, Attempts
from jetsel.client.photograph import Channels, payload_of
from jetsel.wire import Pixels
from tests.unit.client.conftest import Connect
from tests.unit.client.peer import Peer, Script, Seen, answer, daemon_like, fail


def failing(times: int, code: str, retry: bool) -> Script:
    """Answer only after so many failures."""
    return lambda seen: [fail(seen[-1], code, retry) if len(seen) <= times else answer(seen[-1])]


def test_every_setting_of_a_call_is_in_its_request(path: Path, connect: Connect) -> None:
    with Peer(path, daemon_like) as peer:
        given: dict[str, Any] = {"family": "f", "top_k": 2, "policy": "cascade", "deadline_ms": 5e4}
        given |= {"on_doubt": "refuse", "explain": True}
        found = connect(peer.endpoint).classify(b"image", **given)
        request = peer.seen[0].request
        assert isinstance(request, wire.Classify)
        assert peer.seen[0].image == b"image"
        sent = msgspec.structs.asdict(request)
        deadline_ms = sent.pop("deadline_ms")
        assert 0 < deadline_ms <= given.pop("deadline_ms"), "what the client spent is taken off"
        assert given.items() <= sent.items()
        assert found == answer(peer.seen[0])


def test_an_array_arrives_with_its_layout_however_large_it_is(path: Path, connect: Connect) -> None:
    picture = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    large = np.full((300, 400, 3), 7, np.uint8)  # past the size from which memory is lent
    with Peer(path, daemon_like) as peer:
        client = connect(peer.endpoint)
        client.classify(picture[::-1], channels="rgb")
        client.classify(large)
        assert [seen.image for seen in peer.seen] == [picture[::-1].tobytes(), large.tobytes()]
        layouts = [seen.request.pixels for seen in peer.seen if isinstance(seen.request, wire.Classify)]
        assert layouts == [wire.Pixels("rgb8", 3, 2, 9), wire.Pixels("bgr8", 400, 300, 1200)]


def test_every_code_is_raised_in_its_own_class(path: Path, connect: Connect) -> None:
    def refuse(seen: list[Seen]) -> Sequence[wire.Reply]:
        code = (seen[-1].image or b"").decode()
        return [fail(seen[-1], code, errors.BY_CODE[code].retry)]

    with Peer(path, refuse) as peer:
        client = connect(peer.endpoint, retry=False)
        for code, kind in errors.BY_CODE.items():
            with pytest.raises(kind, match=f"this is {code}") as raised:
                client.classify(code.encode())
            assert type(raised.value) is kind
            assert (raised.value.code, raised.value.retry) == (code, kind.retry)


def test_a_newer_daemons_code_keeps_its_name_and_its_retry(path: Path, connect: Connect) -> None:
    with Peer(path, failing(2, "too-warm", retry=True)) as peer:
        assert connect(peer.endpoint).classify(b"image").label == "tabby"
        assert len({seen.request.id for seen in peer.seen}) == 3, "each attempt has an id of its own"
        assert {seen.image for seen in peer.seen} == {b"image"}
    with Peer(path, failing(9, "too-old", retry=False)) as peer:
        with pytest.raises(errors.JetselError, match="this is too-old") as raised:
            connect(peer.endpoint).classify(b"image")
        assert (raised.value.code, raised.value.retry) == ("too-old", False)
        assert len(peer.seen) == 1


def test_a_deadline_that_is_over_before_sending_is_one(path: Path, connect: Connect) -> None:
    with Peer(path, daemon_like) as peer:
        with pytest.raises(errors.DeadlineError, match="passed before"):
            connect(peer.endpoint).classify(b"image", deadline_ms=1e-9)
        assert peer.seen == []


def test_a_late_reply_is_not_taken_for_the_next_ones(path: Path, connect: Connect) -> None:
    def late(seen: list[Seen]) -> Sequence[wire.Reply]:
        if len(seen) == 1:
            return []
        return [answer(seen[0], "the first"), answer(seen[1], "the second")]

    with Peer(path, late) as peer:
        client = connect(peer.endpoint)
        with pytest.raises(errors.NoReplyError):
            client.classify(b"first", timeout_ms=100)
        assert client.classify(b"second").label == "the second"


@pytest.mark.parametrize(
    ("reply", "said"),
    [(wire.Failure(1, None, "bad-request", False, "no JSON"), "no JSON"), (b'{"type": "hello"}', "protocol version 1")],
    ids=["a failure without an id", "no daemon's reply"],
)
def test_what_answers_no_request_by_its_id_is_told(
    path: Path, connect: Connect, reply: wire.Reply | bytes, said: str
) -> None:
    with Peer(path, lambda _: [reply]) as peer, pytest.raises(errors.BadRequestError, match=said):
        connect(peer.endpoint).classify(b"image")


def test_what_is_too_large_is_refused_before_it_is_sent(path: Path, connect: Connect) -> None:
    with Peer(path, daemon_like) as peer:
        client = connect(peer.endpoint, max_image_mb=0.001)
        with pytest.raises(errors.ImageTooLargeError):
            client.classify(bytes(1001))
        with pytest.raises(errors.BadRequestError, match="the limit is 65536"):
            client.classify(b"image", policy="x" * 70_000)
        assert client.classify(bytes(1000)).label == "tabby"
        assert len(peer.seen) == 1


def test_a_message_that_the_peer_hangs_up_on_is_not_sent_for_ever(path: Path, connect: Connect) -> None:
    with Peer(path, daemon_like, max_message_bytes=1000) as peer:
        client = connect(peer.endpoint)
        with pytest.raises(errors.NoReplyError, match="exceeds its limit"):
            client.classify(bytes(2000))
        assert client.classify(bytes(500)).label == "tabby", "the next call connects again"
        assert MOST_LOSSES == 2


def test_who_finds_no_room_in_the_queue_of_a_daemon_that_listens_waits_for_it(path: Path, connect: Connect) -> None:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        listening.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(path))
        client = connect(f"ipc://{path}")
        with pytest.raises(errors.NoReplyError, match="too many clients connect at once"):
            connect(f"ipc://{path}", retry=False).status()
        with pytest.raises(errors.NoReplyError):
            client.status(timeout_ms=500)  # far longer than the pauses of MOST_LOSSES
        found = stack.enter_context(ThreadPoolExecutor()).submit(client.status)
        assert wait([found], 0.5).not_done
        listening.close()
        with Peer(path, daemon_like):
            assert found.result(30).state == "ready"


def test_pauses_double_up_to_the_longest_and_none_is_under_half_of_its_own() -> None:
    attempts = Attempts(timeout_ms=1e6)
    for attempt in range(12):
        expected = min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)
        pause_s = attempts.pause_s(BusyError("full"))
        assert pause_s is not None
        assert expected / 2 <= pause_s <= expected


@pytest.mark.parametrize(
    ("failures", "are_final"),
    [
        ([NoDaemonError("gone")], [True]),
        ([LoadingError("wait"), NoDaemonError("gone, for a restart")], [False, False]),
        ([NoReplyError("lost")] * (MOST_LOSSES + 1), [False] * MOST_LOSSES + [True]),
    ],
    ids=["nobody there", "a restart", "lost again and again"],
)
def test_which_failures_are_final(failures: list[errors.JetselError], are_final: list[bool]) -> None:
    attempts = Attempts(1e6)
    assert [attempts.pause_s(failure) is None for failure in failures] == are_final


@pytest.mark.parametrize("attempts", [Attempts(FIRST_PAUSE_S * 0.49e3), Attempts(1e6, FIRST_PAUSE_S * 0.49e3)])
def test_no_attempt_begins_past_the_timeout_or_the_deadline(attempts: Attempts) -> None:
    assert attempts.pause_s(BusyError("full")) is None


def test_what_is_left_shrinks_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    attempts = Attempts(timeout_ms=500, deadline_ms=200)
    now_s = 100.125
    assert attempts.left_ms == 375
    assert attempts.deadline_left_ms == 75
    assert Attempts(500).deadline_left_ms is None


# Two rows of three pixels whose every byte is different.
PICTURE = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
BYTES = bytes(range(18))


def taken(image: Any, channels: Channels = "bgr", max_image_mb: float = 16.0) -> tuple[bytes, Pixels | None]:
    payload = payload_of(image, channels, max_image_mb)
    return bytes(payload.data), payload.pixels


def test_encoded_bytes_are_sent_as_they_are() -> None:
    for image in (b"abc", bytearray(b"abc"), memoryview(b"abc"), np.frombuffer(b"abc", np.uint8)):
        assert taken(image) == (b"abc", None)


def test_a_path_is_read_whatever_its_type(tmp_path: Path) -> None:
    file = tmp_path / "cat.jpg"
    file.write_bytes(b"abc")
    assert taken(file) == taken(str(file)) == (b"abc", None)


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cat.jpg")
    for path in (tmp_path / "cat.jpg", "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            taken(path)


def test_memory_that_is_contiguous_is_not_copied() -> None:
    payload = payload_of(PICTURE, "bgr", 16.0)
    assert np.shares_memory(np.frombuffer(payload.data, np.uint8), PICTURE)


@pytest.mark.parametrize(
    ("image", "data", "layout"),
    [
        (PICTURE, BYTES, "bgr8"),
        (PICTURE[:, :, 0], bytes(range(0, 18, 3)), "gray8"),
        (PICTURE[:, :, :1], bytes(range(0, 18, 3)), "gray8"),
        (PICTURE[:, :, ::-1], bytes([2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 17, 16, 15]), "bgr8"),
        (PICTURE[:, 1:], bytes([3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17]), "bgr8"),
        (PICTURE[::-1], bytes([*range(9, 18), *range(9)]), "bgr8"),
        (np.asfortranarray(PICTURE), BYTES, "bgr8"),
    ],
    ids=["whole", "gray", "gray with an axis", "channels turned round", "a crop", "upside down", "columns first"],
)
def test_an_array_is_sent_raw_row_after_row_in_the_order_that_was_said(
    image: np.ndarray, data: bytes, layout: Any
) -> None:
    width = image.shape[1]
    pixels = Pixels(layout, width=width, height=2, stride=width * (1 if layout == "gray8" else 3))
    assert taken(image) == (data, pixels)
    if layout == "bgr8":
        assert taken(image, "rgb") == (data, structs.replace(pixels, format="rgb8"))


def test_an_image_that_names_its_channels_is_believed() -> None:
    assert taken(Image.fromarray(PICTURE), "bgr") == (BYTES, Pixels("rgb8", width=3, height=2, stride=9))
    with pytest.raises(BadImageError, match=r"R, G, B, A.*image\.convert"):
        taken(Image.new("RGBA", (3, 2)))


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (PICTURE.astype(np.float32), "uint8"),
        (PICTURE.astype(np.int8), "uint8"),
        (np.zeros((2, 3, 4), np.uint8), r"\(2, 3, 4\)"),
        (np.uint8(7), "shape"),
        (np.zeros((0, 3, 3), np.uint8), "empty"),
        (b"", "empty"),
        (None, "NoneType is not an image"),
        ([[1, 2], [3, 4]], "list is not an image"),
    ],
)
def test_what_is_no_photograph_is_refused(image: Any, said: str) -> None:
    with pytest.raises(BadImageError, match=said):
        taken(image)


@pytest.mark.parametrize("kind", ["path", "bytes", "array"])
def test_past_the_limit_nothing_is_sent(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "large"

    def image(size: int) -> Any:
        file.write_bytes(bytes(size))
        return {"path": file, "bytes": bytes(size), "array": np.zeros((1, size), np.uint8)}[kind]

    assert len(taken(image(1000), max_image_mb=0.001)[0]) == 1000
    with pytest.raises(ImageTooLargeError, match="max_image_mb"):
        taken(image(1001), max_image_mb=0.001)
