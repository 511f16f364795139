"""A full queue and its like: one line as it begins, one with its count as it ends."""

from __future__ import annotations

import pytest

from jetsel.daemon.logs.spells import QUIET_S, Spell, Spells
from jetsel.errors import BadRequestError, BusyError, OverLimitError


def test_a_spell_is_told_as_it_begins_and_with_its_count_once_it_was_quiet() -> None:
    said: list[object] = []
    spell = Spell(lambda words, _: said.append(words), lambda count, took_s: said.append((count, took_s)))
    for now_s in (1.0, 2.0, 2.5):
        spell.seen("full", now_s)
        assert spell.look(now_s)
    assert spell.look(2.4 + QUIET_S)
    assert said == ["full"]
    assert not spell.look(2.5 + QUIET_S)
    assert not spell.look(100.0)
    assert said == ["full", (3, 1.5)]
    spell.seen("full again", 101.0)
    assert said[2:] == ["full again"]


def test_refusals_for_a_full_queue_are_two_lines_however_many(caplog: pytest.LogCaptureFixture) -> None:
    spells = Spells()
    for _ in range(1000):
        spells.refused(BusyError("the queue is full"), "uid 7")
        spells.refused(BadRequestError("the client's own fault is no state of the daemon"), "uid 7")
        spells.look(0)
    assert caplog.messages == ["requests are refused: the queue is full"]
    spells.end()
    assert caplog.messages[1].startswith("no request is refused for a full queue any more: 1000 were in 0.")


def test_clients_at_their_limits_and_lost_replies_are_told_likewise(caplog: pytest.LogCaptureFixture) -> None:
    spells = Spells()
    spells.look(0)
    for lost in range(1, 50):
        spells.refused(OverLimitError("uid 7 sends more than its 10 messages a second"), "uid 7")
        spells.look(lost)
    spells.look(60)
    spells.end()
    events = [getattr(record, "event", None) for record in caplog.records]
    assert events == ["client-over-limit", "replies-lost", "clients-within-limits", "replies-kept"]
    assert caplog.records[0].fields["client"] == "uid 7"
    assert [record.fields["count"] for record in caplog.records[2:]] == [49, 60]
