"""The text of a jetsel.toml."""

from __future__ import annotations

from collections.abc import Iterator

from jetsel.config import EXAMPLES, effective, parse

MAX_BYTES = 4096
WORDS = (b"[server]", b"[models]", b"[policies.a]", b"models = ", b"thresholds = ", b"'''", b'"""', b"\\u", b"= {")


def run(data: bytes) -> None:
    """A file that is accepted can be printed; one that is refused says why in one line."""
    effective(parse(data.decode("utf-8", "replace")))


def seeds() -> Iterator[bytes]:
    for key, example in EXAMPLES.items():
        text = example.partition(" (")[0]
        yield f"[{key.partition('.')[0]}]\n{text}\n".encode() if "." in key else text.encode()
    yield b'[policies.quick]\nmodels = ["xs", "m"]\nthresholds = [0.8]\n'
    yield b"[server]\nqueue_mb = 1e400\ntcp = 1979-05-27T07:32:00Z\n"
    yield b"a = " + b"[" * 400
