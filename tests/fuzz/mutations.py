"""Changes to a file that leave its structure whole, so that most of what the fuzzer tries reaches behind the parser."""

import random
from collections.abc import Callable
from typing import Any

import msgspec

from tests.unit.image.mutants import put_right

Mutate = Callable[[bytes, int], bytes]

_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    255,
    2**63 - 1,
    0.5,
    1e300,
    "",
    "a",
    "a\0b",
    "x" * 300,
    "xs",
    [],
    {},
    [[]],
)


def json_mutation(plain: Mutate) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator that changes one value in a JSON document, or, each third time, its bytes.

    plain: the fuzzer's own, of bytes.
    """

    def mutate(data: bytes, max_bytes: int, seed: int) -> bytes:
        chance = random.Random(seed)
        try:
            document = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return plain(data, max_bytes)
        if chance.random() < 0.3:
            return plain(data, max_bytes)
        return msgspec.json.encode(_changed(document, chance))[:max_bytes]

    return mutate


def image_mutation(plain: Mutate) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator that mostly puts right what else hides a change: a PNG's checksums, a WebP's length."""

    return lambda data, max_bytes, seed: put_right(plain(data, max_bytes), random.Random(seed))


def _changed(value: Any, chance: random.Random) -> Any:
    """Return the document with something of it replaced, left out, renamed or put inside of something else."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        others = {name: kept for name, kept in value.items() if name != key}
        action = chance.random()
        if action < 0.1:
            return others
        if action < 0.2:
            return {**others, "other": value[key]}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], _changed(value[at], chance), *value[at + 1 :]]
    if isinstance(value, int) and chance.random() < 0.5:
        return value + chance.choice((-1, 1, 16, -value, value))
    return chance.choice((*_VALUES, [value], {"a": value}))
