"""Changes to a file that leave its structure whole, so that most of what the fuzzer tries reaches behind the parser."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import msgspec

Mutate = Callable[[bytes, int], bytes]

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 255, 65_536, 2**31, -(2**31), 2**63 - 1, 0.5, -0.0, 1e-300, 1e300),
    *("", "a", "../a", "/etc/passwd", "a\0b", "\U0001f600", "x" * 300, "xs", "top1", "<f4", "|u1", "single:xs"),
    *([], {}, [[]], [1, 2], {"a": 1}),
)


def json_mutation(plain: Mutate) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator that changes one value in the JSON that a file begins with, or, each other time, its bytes.

    plain: the fuzzer's own, of bytes.
    """

    def mutate(data: bytes, max_bytes: int, seed: int) -> bytes:
        chance = random.Random(seed)
        head, separator, rest = data.partition(b"\0")
        try:
            document = msgspec.json.decode(head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return plain(data, max_bytes)
        if chance.random() < 0.3:
            return plain(data, max_bytes)
        document = _changed(document, chance)
        return (msgspec.json.encode(document) + separator + rest)[:max_bytes]

    return mutate


def image_mutation(plain: Mutate) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator that mostly puts right what else hides a change: a PNG's checksums, a WebP's length."""

    def mutate(data: bytes, max_bytes: int, seed: int) -> bytes:
        changed = plain(data, max_bytes)
        if random.Random(seed).random() < 0.2:
            return changed
        if changed.startswith(b"\x89PNG\r\n\x1a\n"):
            return _with_checksums(changed)
        if changed.startswith(b"RIFF"):
            return changed[:4] + struct.pack("<I", max(0, len(changed) - 8)) + changed[8:]
        return changed

    return mutate


def _with_checksums(png: bytes) -> bytes:
    whole = bytearray(png)
    at = 8
    while at + 12 <= len(whole):
        end = at + 8 + int.from_bytes(whole[at : at + 4], "big")
        if end + 4 > len(whole):
            break
        whole[end : end + 4] = struct.pack(">I", zlib.crc32(whole[at + 4 : end]))
        at = end + 4
    return bytes(whole)


def _changed(value: Any, chance: random.Random) -> Any:
    """Return the document with something of it replaced, left out, said twice or put inside of something else."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return _with(value, key, chance)
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        action = chance.random()
        if action < 0.15:
            return value[:at] + value[at + 1 :]
        if action < 0.3:
            return value[: at + 1] + value[at:]
        return [*value[:at], _changed(value[at], chance), *value[at + 1 :]]
    if isinstance(value, int) and chance.random() < 0.5:
        return value + chance.choice((-1, 1, 16, -value, value))
    return chance.choice((*_VALUES, [value], {"a": value}))


def _with(value: dict[str, Any], key: str, chance: random.Random) -> dict[str, Any]:
    action = chance.random()
    if action < 0.1:
        return {name: kept for name, kept in value.items() if name != key}
    if action < 0.2:
        return {chance.choice((*value, "other", "")) if name == key else name: kept for name, kept in value.items()}
    if action < 0.3:
        return {**value, key: value[chance.choice(list(value))]}
    return {**value, key: _changed(value[key], chance)}
