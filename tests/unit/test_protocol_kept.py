"""Version 1 of the protocol is kept: replies that were recorded, and replies without what a peer may lack, are read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel import wire
from tests.unit.hollow import hollow, structs_of

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
