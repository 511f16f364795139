"""Z85 beside pyzmq's, on any bytes and any text."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import z85 as theirs

from jetsel.keys import z85

WORDS = st.lists(st.binary(min_size=4, max_size=4), max_size=20).map(b"".join)


def test_the_example_of_the_rfc() -> None:
    assert z85.encode(bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])) == "HelloWorld"
    assert z85.decode("HelloWorld") == bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])


@given(WORDS)
def test_any_words_are_written_as_pyzmq_writes_them_and_read_back(words: bytes) -> None:
    text = z85.encode(words)
    assert text.encode() == theirs.encode(words)
    assert z85.decode(text) == words


@given(st.text(st.sampled_from(sorted(z85.LETTERS.decode() + "~`|;_, é")), min_size=5, max_size=5))
def test_a_group_is_read_or_refused_as_pyzmq_does(text: str) -> None:
    try:
        expected = theirs.decode(text.encode("ascii"))
    except (ValueError, KeyError, struct.error):
        with pytest.raises(ValueError):
            z85.decode(text)
    else:
        assert z85.decode(text) == expected


@pytest.mark.parametrize("text", ["a", "a" * 4, "a" * 6])
def test_a_part_of_a_group_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Z85"):
        z85.decode(text)


def test_a_part_of_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of four"):
        z85.encode(b"abc")
