"""What is counted, by outcome; how reloads ended; and where the time of answers went."""

from __future__ import annotations

import msgspec

from jetsel import wire
from jetsel.daemon.tally import Tally
from jetsel.errors import ReloadFailedError
from jetsel.wire import Ran, Stages
from jetsel.wire.status import Percentiles, StageTimes
from tests.unit.client.peer import Seen, answer, fail
from tests.waiting import LIMIT_S

ASKED = Seen(wire.Classify(1, "x"), b"")
ANSWER = answer(ASKED)
ESCALATED = msgspec.structs.replace(
    ANSWER,
    ran=[Ran("m", "first", 0.5, 1.5, 1), Ran("big", "m is not sure", 0.9, 6.0, 1)],
    stages_ms=Stages(queue=1.0, decode=2.0, features=0.25, choice=0.5, inference=[1.5, 6.0], total=12.0, waiting=0.75),
)


def test_outcomes_are_counted_by_name() -> None:
    found = Tally()
    for outcome in ("busy", "busy"):
        found.count(outcome)
    found.ended(ANSWER)
    found.ended(fail(ASKED, "bad-image", retry=False))
    assert found.outcomes() == {"busy": 2, "ok": 1, "bad-image": 1}
    found.outcomes().clear()
    assert found.outcomes() == {"busy": 2, "ok": 1, "bad-image": 1}, "what it gave away is a copy"


def test_an_answer_that_took_more_than_one_model_is_counted_as_such() -> None:
    found = Tally()
    found.ended(ANSWER)
    found.ended(ESCALATED)
    found.ended(fail(ASKED, "deadline", retry=False))
    assert found.of_family("f") == (2, 1)
    assert found.of_family("another") == (0, 0)


def test_stages_are_those_of_the_answers_alone() -> None:
    found = Tally()
    assert found.stages_ms() == StageTimes(0, None, None, None, None, None, None, None)
    found.ended(fail(ASKED, "bad-image", retry=False))
    assert found.stages_ms().answers == 0
    found.ended(ANSWER)
    assert found.stages_ms().features is None
    found.ended(ESCALATED)
    stages = found.stages_ms()
    assert stages.answers == 2
    assert stages.features == Percentiles(0.25, 0.25, 0.25), "of the one that had any"
    assert stages.inference == Percentiles(1.5, 7.5, 7.5), "both runs of the second"
    assert stages.total == Percentiles(3.0, 12.0, 12.0)
    assert stages.waiting == Percentiles(0.75, 0.75, 0.75), "of the one that told"


def test_reloads_are_counted_by_how_they_ended_and_the_last_is_told() -> None:
    found = Tally()
    assert (found.reloads(), found.last_reload()) == ({}, None)
    found.reloaded(1.5, ["model m"])
    last = found.last_reload()
    assert last is not None
    assert (last.took_s, last.changed, last.refused) == (1.5, ["model m"], None)
    assert 0 <= last.ago_s < LIMIT_S
    found.reloaded(0.5, ReloadFailedError("no such file"))
    last = found.last_reload()
    assert last is not None
    assert (last.changed, last.refused) == ([], "no such file")
    assert found.reloads() == {"ok": 1, "reload-failed": 1}
