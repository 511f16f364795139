"""Lines for people: what they say, and that nothing from outside breaks out of its line or its quotes."""

from __future__ import annotations

import logging
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.logs.entry import entry_of
from jetsel.daemon.logs.readable import for_the_journal, readable
from tests.unit.daemon.logs.records import record


def line_of(*args: object, created: float = 1795301226.1239, **fields: object) -> str:
    made = record(*args, **fields)  # type: ignore[arg-type]
    made.created, made.msecs = created, created % 1 * 1000
    return readable(entry_of(made))


def test_a_line_has_its_time_in_utc_its_level_its_words_and_what_they_lack() -> None:
    line = line_of(
        "model %s failed", "m", level=logging.ERROR, name="model-failed", model="m", code="no such", took_s=0.25
    )
    assert line == ('2026-11-21T22:47:06.123Z error    model m failed [event=model-failed code="no such" took_s=0.25]')


def test_what_is_not_known_is_left_out_and_several_values_stand_together() -> None:
    assert line_of("x", name="ready", pid=None, rail=["A", "B C"], models=[]).endswith('x [event=ready rail=A,"B C"]')


def test_an_id_stands_in_the_fields_even_where_the_words_hold_it() -> None:
    assert line_of("ready to fail", name="request", request_id="ready").endswith("[event=request request_id=ready]")


@pytest.mark.parametrize(
    "evil",
    [
        "a\n2026-11-21T22:47:06.123Z info     ready [event=ready]",
        "\x1b[31mred\x1b]0;title\x07",
        "\x9b2J",  # the same, as one character
        "back\b\b\b\rover",
        "\u202eesrever",
        "line\u2028end\x85next\x0bmore",
        'quote" event="ready',
        "\ud800 alone",
        "nul\0",
    ],
)
def test_what_a_client_sends_stays_in_its_line_and_its_quotes(evil: str) -> None:
    for line in (
        line_of("refused: %s", evil, name="request", request_id=evil),
        for_the_journal(entry_of(record("refused: %s", evil, request_id=[evil, evil])), 6),
    ):
        assert line.isprintable(), line
        assert line.isascii() or "\u202e" not in line
        assert line.count("[event=") == 1
        fields = line[line.index("[event=") :]
        assert re.search(r'request_id="(?:[^"\\]|\\.)*"[,\]]', fields), line


@given(st.text(st.characters()))
def test_whatever_is_sent_a_line_is_one_line(text: str) -> None:
    line = line_of("%s", text, request_id=text, model=text)
    assert line.isprintable()
    assert len(line.splitlines()) == 1


def test_a_long_value_is_cut() -> None:
    assert len(line_of("x", peer="p" * 100_000)) < 400


def test_a_traceback_cannot_pass_for_lines_of_the_log() -> None:
    made = record("failed", level=logging.ERROR, name="request-failed")
    try:
        raise RuntimeError("first\n2026-11-21T22:47:06.123Z info     ready\x1b[2J")
    except RuntimeError:
        made.exc_info = sys.exc_info()
    first, *more = readable(entry_of(made)).splitlines()
    assert first.endswith("error    failed [event=request-failed]")
    assert more[0] == "    | Traceback (most recent call last):"
    assert all(line.startswith("    | ") and line.isprintable() for line in more)
    assert all(line.startswith("<3>") for line in for_the_journal(entry_of(made), 3).splitlines())


def test_colours_mark_the_level_alone() -> None:
    made = record("hot \x1b[0m", level=logging.WARNING)
    coloured, plain = readable(entry_of(made), is_coloured=True), readable(entry_of(made))
    assert "\x1b[33mwarning \x1b[0m hot \\x1b[0m " in coloured
    assert re.sub("\x1b\\[[0-9]*m", "", coloured) == plain


def test_a_call_that_does_not_fit_its_words_is_told_as_far_as_it_goes() -> None:
    assert "%d of 3 ('x', 'y')" in line_of("%d of 3", "x", "y")
