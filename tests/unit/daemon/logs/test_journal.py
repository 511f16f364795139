"""Entries in the journal's native protocol: well-formed whatever a value holds, and sent however large."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.logs.entry import entry_of
from jetsel.daemon.logs.journal import Journal, encode, is_connected, pairs_of, priority
from tests.unit.daemon.logs.records import JournalSocket, read_entry, record

ALL_SEALS = 0xF


@pytest.fixture
def server(tmp_path: Path) -> Iterator[JournalSocket]:
    found = JournalSocket(tmp_path / "socket")
    yield found
    found.close()


def test_the_protocols_own_example_is_written_as_it_stands_there() -> None:
    pairs = [("PRIORITY", "3"), ("BINARY_BLOB", "xx\nx"), ("MESSAGE", "Something happened.")]
    assert encode(pairs) == (b"PRIORITY=3\nBINARY_BLOB\n\x04\0\0\0\0\0\0\0xx\nx\nMESSAGE=Something happened.\n")


@given(st.lists(st.text(st.characters()), min_size=1))
def test_whatever_a_value_holds_it_is_read_back_and_no_other_field_with_it(values: list[str]) -> None:
    found = read_entry(encode([("JETSEL_MODEL", value) for value in values]))
    assert found == {"JETSEL_MODEL": [value.encode("utf-8", "backslashreplace") for value in values]}


def test_an_entry_says_what_happened_where_and_to_whom() -> None:
    made = record(
        "%s is away: %s", "m", "hung", level=logging.ERROR, name="host-hung", model=["m", "s"], pid=7, code=None
    )
    made.about = ("one", "two")
    found = {name: b"|".join(values).decode() for name, values in read_entry(encode(pairs_of(entry_of(made)))).items()}
    assert found == {
        "MESSAGE": "m is away: hung",
        "PRIORITY": "3",
        "SYSLOG_IDENTIFIER": "jetsel",
        "LOGGER": "jetsel.test",
        "THREAD_NAME": "MainThread",
        "CODE_FILE": made.pathname,
        "CODE_LINE": "7",
        "CODE_FUNC": "func",
        "JETSEL_EVENT": "host-hung",
        "JETSEL_REQUEST_ID": "one|two",
        "JETSEL_MODEL": "m|s",
        "JETSEL_PID": "7",
    }


def test_an_id_with_line_ends_makes_no_field_of_its_own() -> None:
    made = record("failed", name="request", request_id="x\nPRIORITY=0\nJETSEL_EVENT=ready\x1b[2J")
    found = read_entry(encode(pairs_of(entry_of(made))))
    assert found["PRIORITY"] == [b"6"]
    assert found["JETSEL_EVENT"] == [b"request"]
    assert found["JETSEL_REQUEST_ID"] == [b"x\nPRIORITY=0\nJETSEL_EVENT=ready\x1b[2J"]


@pytest.mark.parametrize(("level", "expected"), [(10, 7), (20, 6), (25, 6), (30, 4), (40, 3), (50, 2), (60, 2), (1, 7)])
def test_levels_have_the_priorities_of_syslog(level: int, expected: int) -> None:
    assert priority(level) == expected


def test_an_entry_goes_out_as_one_datagram(server: JournalSocket) -> None:
    with closing(Journal(server.path)) as journal:
        assert journal.send(encode([("MESSAGE", "here")]))
    assert server.receive() == ({"MESSAGE": [b"here"]}, None)


def test_an_entry_too_large_for_a_datagram_goes_out_as_a_sealed_file(server: JournalSocket) -> None:
    text = "x" * (9 << 20)  # more than the socket's buffer, however large it may be made
    before = descriptors()
    with closing(Journal(server.path)) as journal:
        assert journal.send(encode([("MESSAGE", text)]))
        found, seals = server.receive()
    assert (found, seals) == ({"MESSAGE": [text.encode()]}, ALL_SEALS)
    assert descriptors() == before


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_journal_that_is_not_there_or_reads_nothing_is_not_waited_for(server: JournalSocket, tmp_path: Path) -> None:
    with closing(Journal(str(tmp_path / "nothing"))) as nobody:
        assert not nobody.send(b"MESSAGE=x\n")
    with closing(Journal(server.path)) as journal:
        sent = 0
        while journal.send(encode([("MESSAGE", "x" * 1000)])):  # comes to an end: a socket's queue is bounded
            sent += 1
        assert sent > 0
        server.entry()
        assert journal.send(b"MESSAGE=again\n"), "once it reads, it is served again"


def test_the_journal_is_recognised_by_device_and_inode_alone(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stat = os.fstat(ours.fileno())
        stream = {"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"}
        assert is_connected(ours.fileno(), stream)
        assert not is_connected(theirs.fileno(), stream), "it was turned elsewhere since"
        assert not is_connected(ours.fileno(), {})
        assert not is_connected(ours.fileno(), {"JOURNAL_STREAM": "rubbish"})
    assert not is_connected(ours.fileno(), stream), "a closed one"
