"""What is counted, by outcome; how reloads ended; and where the time of answers went."""

import msgspec

from jetsel import wire
from jetsel.base.errors import ReloadFailedError
from jetsel.daemon.tally import Tally
from jetsel.wire import Ran, Stages
from jetsel.wire.counts import AnswerCounts, Histogram
from tests.unit.client.peer import Seen, answer, fail
from tests.waiting import LIMIT_S

ASKED = Seen(wire.Classify(1, "x"), b"")
ANSWER = answer(ASKED)
ESCALATED = msgspec.structs.replace(
    ANSWER,
    ran=[Ran("m", "first", 0.5, 1.5, 1), Ran("big", "m is not sure", 0.9, 6.0, 1)],
    stages_ms=Stages(queue=1.0, decode=2.0, features=0.25, choice=0.5, inference=[1.5, 6.0], total=12.0, waiting=0.75),
)


def test_an_answer_that_took_more_than_one_model_is_counted_as_such() -> None:
    found = Tally()
    found.count_reply(ANSWER)
    found.count_reply(ESCALATED)
    found.count_reply(fail(ASKED, "deadline", retry=False))
    assert found.family_counts("f") == (2, 1)
    assert found.family_counts("another") == (0, 0)
    found.outcomes().clear()
    assert found.outcomes() == {"ok": 2, "deadline": 1}, "what it gave away is a copy"


def test_reloads_are_counted_by_how_they_ended_and_the_last_is_told() -> None:
    found = Tally()
    assert (found.reloads(), found.last_reload()) == ({}, None)
    found.count_reload(1.5, ["model m"])
    last = found.last_reload()
    assert (last.took_s, last.changed, last.refused) == (1.5, ["model m"], None)
    assert 0 <= last.ago_s < LIMIT_S
    found.count_reload(0.5, ReloadFailedError("no such file"))
    last = found.last_reload()
    assert (last.changed, last.refused) == ([], "no such file")
    assert found.reloads() == {"ok": 1, "reload-failed": 1}


def test_answers_are_counted_by_what_gave_them_and_histograms_hold_every_stage() -> None:
    found = Tally()
    found.count_reply(ANSWER)
    found.count_reply(ESCALATED, deadline_ms=12.0)
    found.count_reply(
        msgspec.structs.replace(ESCALATED, in_doubt=True, cut_short=True, policy="chain"), deadline_ms=11.9
    )
    answers = found.answers({}, class_counts=False)
    assert answers.by_model == {"f": {ANSWER.model: 3}}
    assert answers.by_policy == {"f": {ANSWER.policy: 2, "chain": 1}}
    assert (answers.in_doubt, answers.cut_short, answers.on_time, answers.late) == (1, 1, 1, 1)
    assert sum(answers.stages["features"].counts) == 2, "of those that had any"
    total = answers.stages["total"]
    assert total.sum_ms == 27.0
    assert [bound for bound, count in zip(answers.bounds_ms, total.counts, strict=False) if count] == [3.5, 15.0]
    assert answers.percentile_ms(answers.stages["inference"], 0.5) == 5.625, "two of three lie between 5 and 7.5 ms"


def test_labels_are_counted_while_that_is_asked_for_and_told_to_nobody_else() -> None:
    found = Tally()
    found.count_reply(ANSWER)
    assert found.answers({}, class_counts=True).by_label == {}
    for reply in (ANSWER, ANSWER, msgspec.structs.replace(ANSWER, family="g"), fail(ASKED, "busy", retry=True)):
        found.count_reply(reply, class_counts=True)
    assert found.answers({}, class_counts=True).by_label == {"f": {ANSWER.label: 2}, "g": {ANSWER.label: 1}}
    assert found.answers({}, class_counts=False).by_label is None


def test_the_last_answers_are_told_newest_first_and_as_many_as_are_wanted() -> None:
    found = Tally()
    for number in range(5):
        found.count_reply(msgspec.structs.replace(ESCALATED, id=f"r{number}"))
    last = found.recent(3)
    assert [one.id for one in last] == ["r4", "r3", "r2"]
    assert (last[0].ran, last[0].total_ms) == (["m", "big"], 12.0)
    assert 0 <= last[0].ago_s < LIMIT_S
    assert found.recent(0) == []


def test_a_histogram_since_an_earlier_state_is_what_came_after_it_or_all_if_counting_began_anew() -> None:
    now = Histogram([4, 2, 1], 60.0)
    assert now.since(Histogram([1, 2, 0], 12.0)) == Histogram([3, 0, 1], 48.0)
    assert now.since(Histogram([5, 0, 0], 12.0)) == now, "a count is lower than before"
    assert AnswerCounts(bounds_ms=[1.0, 2.0]).percentile_ms(now.since(now), 0.95) is None
