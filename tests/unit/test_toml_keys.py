"""A key of many parts is found before a TOML parser sees it, wherever it stands, and nothing else is taken for one."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.config import parse
from jetsel.errors import ConfigError
from jetsel.toml_keys import MAX_KEY_PARTS, line_of_deep_key

DEEP = ".".join("a" * (MAX_KEY_PARTS + 1))

HIDDEN = {
    "plain": f"{DEEP} = 1",
    "a section": f"[{DEEP}]",
    "an array of sections": f"[[{DEEP}]]",
    "blanks": f"{DEEP.replace('.', ' . ')} = 1",
    "quoted parts": ".".join('"=\\""' for _ in range(MAX_KEY_PARTS + 1)) + " = 1",
    "parts in single quotes": ".".join("'[=,'" for _ in range(MAX_KEY_PARTS + 1)) + " = 1",
    "an inline table": f"x = {{ y = 1, {DEEP} = 1 }}",
    "behind a long string of four quotes": f'x = {{ y = """a"""", {DEEP} = 1 }}',
    "behind one of five": f"x = {{ y = '''a''''', {DEEP} = 1 }}",
    "behind an empty one": f'x = {{ y = """""", {DEEP} = 1 }}',
    "behind quotes inside of one": f'x = {{ y = """ "a" ""b"" \\""" """, {DEEP} = 1 }}',
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_a_deep_key_is_found_wherever_it_stands(text: str) -> None:
    msgspec.toml.decode(text)  # it is TOML
    assert line_of_deep_key(f"\n\n{text}\n") == 3
    with pytest.raises(ConfigError, match=rf"line 1: a key of over {MAX_KEY_PARTS} parts"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        DEEP.removesuffix(".a") + " = 1",
        f"x = [{', '.join(['0.5'] * 100)}]",
        f"x = '{DEEP}'",
        f'x = "\\"{DEEP}"',
        f'x = """\n{DEEP} = 1\n"""',
        f"x = '''\n{DEEP} = 1\n'''",
        f"x = 1 # {DEEP}",
        "a.b = 1\n" * 100,
    ],
)
def test_what_is_no_deep_key_is_none(text: str) -> None:
    assert line_of_deep_key(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" + "a." * 100_000 + "b]\n" + "".join(f"x{number}=1\n" for number in range(40_000)),
        "a." * 200_000 + "b=1",
        "[" + "a." * 20 + "b]\n" + "x=1\n" * 100,
    ],
)
def test_a_key_that_would_keep_the_parser_busy_for_a_minute_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="line 1: a key of over"):
        parse(text)


@pytest.mark.parametrize("piece", ['"', '"""', "'", "'''", "\\", '\\"', '\\"""', '""" ', "#", ".", "=", '"\\"'])
def test_the_look_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (2**20 // len(piece))
    began_s = time.thread_time()
    line_of_deep_key(text)
    line_of_deep_key(f'"""{text}')
    assert time.thread_time() - began_s < 20  # a square would take hours


@given(st.text("a.=[]{}\"'\\#\n ,", max_size=60))
def test_a_deep_key_that_a_parser_reads_behind_any_text_was_found(text: str) -> None:
    whole = f"{text}\n{DEEP.replace('a', 'k')} = 1\n"
    try:
        plain = msgspec.toml.decode(whole)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    if deepest(plain) > MAX_KEY_PARTS:  # else it lies within a long string of the text
        assert line_of_deep_key(whole) is not None


def deepest(value: object) -> int:
    """How many keys stand above the deepest value."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict) + max(map(deepest, below), default=0)
