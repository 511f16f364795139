"""The messages on the socket: all round-trip, version 1 is kept, and all else that arrives raises an error of ours."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jetsel import wire
from jetsel.base.errors import BadRequestError, BusyError, JetselError, UnknownKindError, UnsupportedVersionError
from tests.unit.hollow import hollow, structs_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # JSON in UTF-8 has no lone surrogates
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**53)
SIDES = st.integers(-(2**31), 2**31)
# What a field's type alone decides: JSON has no infinity, and numbers that every language reads end at 2**53.
st.register_type_strategy(float, NUMBERS)
st.register_type_strategy(int, COUNTS)
st.register_type_strategy(str, TEXT)

PIXELS = st.builds(
    wire.Pixels, format=st.sampled_from(["bgr8", "rgb8", "gray8", "nv12"]), width=SIDES, height=SIDES, stride=SIDES
)
BOXES = st.builds(
    wire.Boxes,
    unit=st.sampled_from(["pixels", "shares"]),
    xywh=st.lists(st.lists(st.none() | NUMBERS, max_size=5), min_size=1, max_size=5),
)
WORDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=99)
CLASSIFY = st.builds(
    wire.Classify,
    v=st.just(1),
    id=IDS,
    family=st.none() | IDS,
    top_k=st.integers(1, 1000),
    policy=st.none() | IDS,
    model=st.none() | IDS,
    deadline_ms=st.none() | st.floats(0, 3_600_000, exclude_min=True),
    on_doubt=st.sampled_from([None, "use", "refuse"]),
    explain=st.booleans(),
    pixels=st.none() | PIXELS,
    boxes=st.none() | BOXES,
)
REQUESTS = st.one_of(CLASSIFY, *(st.builds(kind, v=st.just(1), id=IDS) for kind in (wire.Status, wire.Reload)))

st.register_type_strategy(wire.Answer, st.builds(wire.Answer))  # what has a default keeps it
REPLIES = st.one_of(*(st.builds(kind) for kind in get_args(wire.Reply)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)

BREAK_UTF8 = b'{"v": 1, "id": "a\xff", "type": "status"}'
NESTED = b'{"v": 1, "id": "a", "type": "status", "x": %s}' % (b"[" * 30_000 + b"]" * 30_000)
HUGE = b'{"v": %s, "id": "a", "type": "status"}' % (b"9" * 5000)


@given(REQUESTS)
def test_every_request_comes_back_as_it_was(request_: wire.Request) -> None:
    frame = wire.encode(request_)
    assert wire.decode_request(frame) == request_
    assert wire.read_id(frame) == request_.id


@given(REPLIES)
def test_every_reply_comes_back_as_it_was(reply: wire.Reply) -> None:
    assert wire.decode_reply(wire.encode(reply)) == reply


def reads_or_refuses(frame: bytes) -> None:
    """Give the frame to every reader; anything that they raise beside our own errors fails the test."""
    found = wire.read_id(frame)
    assert found is None or (isinstance(found, str) and len(found) <= 128)
    for read, kinds in ((wire.decode_request, wire.Request), (wire.decode_reply, wire.Reply)):
        message, error = outcome(read, frame)
        assert isinstance(message, get_args(kinds)) or error is not None
        if error is not None:
            assert error.code in {"bad-request", "unsupported-version", "unknown-kind"}
            assert len(str(error)) < 1000, "what a stranger sends is not sent back at length"


def outcome(read: Callable[[bytes], Any], frame: bytes) -> tuple[Any, JetselError | None]:
    try:
        return read(frame), None
    except JetselError as error:
        return None, error


@given(st.binary(max_size=200))
@example(b"")
@example(BREAK_UTF8)
@example(NESTED)
@example(HUGE)
@example(b'{"v": "%s"}' % (b"x" * 60_000))
@example(b'{"v": 1, "id": "a", "type": "classify", "on_doubt": "%s"}' % (b"x" * 60_000))
@example(b'{"v": 1, "type": "%s"}' % (b"x" * 60_000))
def test_arbitrary_bytes_raise_our_errors_and_nothing_else(frame: bytes) -> None:
    reads_or_refuses(frame)


@given(st.one_of(REQUESTS, REPLIES), st.integers(0), st.binary(min_size=1, max_size=3))
def test_a_message_damaged_in_one_place_raises_our_errors_and_nothing_else(
    message: wire.Request | wire.Reply, place: int, damage: bytes
) -> None:
    frame = wire.encode(message)
    place %= len(frame)
    reads_or_refuses(frame[:place] + damage + frame[place + 1 :])
    reads_or_refuses(frame[:place])


@given(REQUESTS, TEXT, JSON)
def test_one_unknown_field_is_refused_by_name(request_: wire.Request, name: str, value: Any) -> None:
    fields = msgspec.to_builtins(request_)
    if name in {*fields, *type(request_).__struct_fields__}:  # defaults are left out on the wire
        name = f"not {name}"
    frame = msgspec.json.encode({**fields, name: value})
    with pytest.raises(BadRequestError, match="unknown field") as caught:
        wire.decode_request(frame)
    assert name in str(caught.value)
    assert wire.read_id(frame) == request_.id


@given(REPLIES, TEXT, JSON)
def test_a_reply_may_have_fields_that_a_client_does_not_know(reply: wire.Reply, name: str, value: Any) -> None:
    fields = msgspec.to_builtins(reply)
    if name in fields:
        name = f"not {name}"
    assert wire.decode_reply(msgspec.json.encode({**fields, name: value})) == reply


def asking(**fields: Any) -> bytes:
    """A classify request with these fields changed; written by Python, which writes NaN and lone surrogates too."""
    return json.dumps({"v": 1, "type": "classify", "id": "a", **fields}).encode()


@given(
    st.integers(-(2**63), 2**63).filter(lambda v: v != 1) | st.none() | st.booleans() | TEXT | st.lists(COUNTS), JSON
)
def test_another_version_is_reported_as_such_whatever_else_it_says(version: Any, other: Any) -> None:
    frame = msgspec.json.encode({"v": version, "id": "a", "type": other, "novelty": other})
    with pytest.raises(UnsupportedVersionError, match='send "v": 1, not '):
        wire.decode_request(frame)
    assert wire.read_id(frame) == "a"


@pytest.mark.parametrize("kind", ["shutdown", "Classify", "", None, 1, ["classify"], {"classify": 1}])
def test_an_unknown_kind_is_answered_with_the_known_ones(kind: Any) -> None:
    frame = asking(type=kind)
    with pytest.raises(UnknownKindError, match="use one of classify, status, reload"):
        wire.decode_request(frame)
    assert wire.read_id(frame) == "a"


@pytest.mark.parametrize("found", [None, 1, 1.5, True, ["a"], {"a": 1}, "x" * 129])
def test_an_id_of_another_kind_or_too_long_is_null(found: Any) -> None:
    frame = asking(id=found)
    assert wire.read_id(frame) is None
    with pytest.raises(BadRequestError, match=r"\$\.id"):
        wire.decode_request(frame)


def test_what_is_no_json_object_is_refused_as_such() -> None:
    for frame in (b"", b"\0", b"[]", b'"a"', b"1", b"null", b'{"v": 1', BREAK_UTF8, NESTED, HUGE):
        with pytest.raises(BadRequestError, match="not a JSON object"):
            wire.decode_request(frame)
        assert wire.read_id(frame) is None


def test_the_largest_frame_is_read_and_one_byte_more_is_not() -> None:
    small = b'{"v":1,"id":"a","type":"status"}'
    whole = small + b" " * (wire.MAX_JSON_BYTES - len(small))
    assert len(whole) == 65_536
    assert wire.decode_request(whole) == wire.Status(1, "a")
    assert wire.read_id(whole) == "a"
    with pytest.raises(BadRequestError, match="longer than the 65536 bytes"):
        wire.decode_request(whole + b" ")
    assert wire.read_id(whole + b" ") is None


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"top_k": 0}, "top_k"),
    ({"top_k": 1001}, "top_k"),
    ({"top_k": 2.5}, "top_k"),
    ({"deadline_ms": 0}, "deadline_ms"),
    ({"deadline_ms": 3_600_001}, "deadline_ms"),
    ({"on_doubt": "guess"}, "on_doubt"),
    ({"explain": "false"}, "explain"),
    ({"model": "x" * 129}, "model"),
    ({"id": ""}, "id"),
    ({"pixels": {"format": "yuyv", "width": 1, "height": 1, "stride": 2}}, "pixels.format"),
    ({"pixels": {"format": "bgr8", "width": 1, "height": 1}}, "pixels"),
    ({"pixels": {"format": "bgr8", "width": 1, "height": 1, "stride": 3, "offset": 0}}, "pixels"),
)


def test_a_wrong_value_is_refused_by_its_field() -> None:
    for fields, place in WRONG:
        with pytest.raises(BadRequestError, match=rf"\$\.{place}`$"):
            wire.decode_request(asking(**fields))


def test_what_json_or_utf8_cannot_say_is_refused() -> None:
    for value in (float("nan"), float("inf"), 10**400):
        with pytest.raises(BadRequestError):
            wire.decode_request(asking(deadline_ms=value))
    with pytest.raises(BadRequestError):
        wire.decode_request(asking(id="\ud800"))


def test_a_failure_carries_the_errors_code_and_whether_to_retry() -> None:
    assert wire.failure("a", BusyError("the queue is full")) == wire.Failure(1, "a", "busy", True, "the queue is full")
    assert wire.failure(None, BadRequestError("no JSON")) == wire.Failure(1, None, "bad-request", False, "no JSON")


def test_what_a_request_leaves_to_the_daemon_is_not_sent() -> None:
    told = json.loads(wire.encode(wire.Classify(1, "a", deadline_ms=5.0)))
    assert told == {"type": "classify", "v": 1, "id": "a", "deadline_ms": 5.0}, "an older daemon knows no more"


@pytest.mark.parametrize("name", ["deadline_ms", "least_accuracy", "most_energy_mj"])
def test_a_limit_that_is_no_number_is_not_sent_as_none(name: str) -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(BadRequestError, match=name):
            wire.Classify(v=1, id="a", **{name: value})


RECORDED = sorted((Path(__file__).parents[1] / "data" / "protocol").glob("*.json"))
NEEDED = {"v", "id", "state"}


def within(recorded: Any, read: Any) -> bool:
    """Whether all that was recorded is in what was read, with the same values."""
    if isinstance(recorded, dict):
        return all(name in read and within(value, read[name]) for name, value in recorded.items())
    if isinstance(recorded, list):
        return len(recorded) == len(read) and all(map(within, recorded, read))
    return bool(recorded == read)


def without_each(kind: type[msgspec.Struct], found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the object without each of the fields that have a default, and without all of them."""
    optional = [field.name for field in msgspec.structs.fields(kind) if not field.required]
    for names in ([name] for name in optional), [optional]:
        for gone in names:
            yield {name: value for name, value in found.items() if name not in gone}


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_a_recorded_reply_is_read_as_it_was_sent_and_without_what_is_optional(path: Path) -> None:
    recorded = json.loads(path.read_bytes())
    reply = wire.decode_reply(path.read_bytes())
    assert within(recorded, json.loads(wire.encode(reply)))
    for other in without_each(type(reply), recorded):
        assert type(wire.decode_reply(json.dumps(other).encode())) is type(reply)


def test_a_client_needs_no_field_of_a_status_but_three() -> None:
    for kind in structs_of(wire.StatusReply):
        required = {field.name for field in msgspec.structs.fields(kind) if field.required}
        assert required <= (NEEDED if kind is wire.StatusReply else set()), kind


def test_a_status_without_optional_fields_has_no_zero_for_what_is_unknown() -> None:
    text = wire.encode(hollow()).decode()
    assert json.loads(text)["families"][0]["models"][0]["runs"] is None
    assert ":0" not in text
    assert ":false" not in text
