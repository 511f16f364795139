"""Labels that hold once they have stayed for their frames, and votes about a tracked object."""

import msgspec
import pytest

from jetsel.addons.cameras.labels import LabelTracker, Votes, reported_label
from jetsel.wire import Answer
from tests.unit.addons.cameras.answers import answer


def test_a_label_holds_once_it_has_stayed_and_says_since_when_and_what_was_before() -> None:
    labels = LabelTracker(3)
    found = [labels.add_answer(answer(one, 0.5 + i / 10), float(i)) for i, one in enumerate(["cat"] * 4 + ["dog"] * 3)]
    assert [i for i, change in enumerate(found) if change] == [2, 6]
    assert (found[2].answer.probability, found[2].previous, found[2].since_s) == (0.7, None, 0.0)
    assert (found[6].answer.wnid, found[6].previous, found[6].since_s) == ("dog", "cat, a synonym", 4.0)


def test_a_flicker_is_no_change() -> None:
    labels = LabelTracker(2)
    shown = ["cat", "cat", "dog", "cat", "dog", "cow", "dog", "cat"]
    changes = [labels.add_answer(answer(one), float(i)) for i, one in enumerate(shown)]
    assert [i for i, change in enumerate(changes) if change] == [1]


def test_it_is_settled_unless_another_label_is_on_its_way() -> None:
    labels = LabelTracker(2)
    settled = [labels.is_settled]
    for shown in ("cat", "cat", "dog", "cat", "dog", "dog"):
        labels.add_answer(answer(shown), 0.0)
        settled.append(labels.is_settled)
    assert settled == [False, False, True, False, True, False, True]


def test_what_a_promise_does_not_cover_is_one_label_whatever_class_is_likely() -> None:
    labels = LabelTracker(2)
    doubtful = [answer(one, in_doubt=True, wrong_at_most=0.05) for one in ("cat", "dog", "cow")]
    changes = [labels.add_answer(one, float(i)) for i, one in enumerate(doubtful)]
    assert [change is not None for change in changes] == [False, True, False]
    assert reported_label(doubtful[1]) == ("unknown", None)
    assert labels.add_answer(answer("cow", in_doubt=True), 3.0) is None, (
        "without a promise the fallback's answer counts"
    )
    change = labels.add_answer(answer("cow", in_doubt=True), 4.0)
    assert (reported_label(change.answer).id, change.previous) == ("cow", "unknown")


def votes(*answers: Answer) -> Votes:
    found = Votes()
    for one in answers:
        found.add(one)
    return found


def named(name: str) -> Answer:
    """An answer of a family whose classes have names alone."""
    return msgspec.structs.replace(answer(name), label=name)


@pytest.mark.parametrize(
    ("n_jays", "n_others", "words"),
    [
        (2, 0, "only 2 images"),
        (2, 2, "2 of 4 answers agree on jay"),
        (3, 3, "3 of 6 answers agree on jay"),
        (9, 7, "9 of 16 answers agree on jay"),
        (3, 0, None),
        (3, 2, None),
        (6, 4, None),
        (9, 6, None),
    ],
)
def test_a_sub_label_needs_three_answers_and_60_percent(n_jays: int, n_others: int, words: str | None) -> None:
    found = votes(*[answer("jay")] * n_jays, *[answer("rook")] * n_others)
    result = found.result()
    if words is None:
        assert (result.label, result.votes) == ("jay", n_jays + n_others)
    else:
        assert result is None
        assert words in str(found.why_none())


def test_doubt_is_never_written_and_a_class_called_unknown_is() -> None:
    doubtful = votes(*(answer(one, in_doubt=True, wrong_at_most=0.05) for one in ("jay", "rook", "crow")))
    assert doubtful.result() is None
    assert "3 of 3 answers are in doubt" in str(doubtful.why_none())
    written = votes(*(named("unknown") for _ in range(3))).result()
    assert written.label == "unknown"
    both = votes(
        *(named("unknown") for _ in range(3)), *(answer("jay", in_doubt=True, wrong_at_most=0.05) for _ in "123")
    )
    assert "3 of 6 answers agree on unknown" in str(both.why_none()), "a class and doubt are two votes"


@pytest.mark.parametrize("name", ["none", "None"])
def test_frigates_class_for_nothing_gives_none(name: str) -> None:
    found = votes(*(named(name) for _ in range(3)))
    assert found.result() is None
    assert f"3 of 3 answers are {name}, the class for objects that get no sub-label" in str(found.why_none())


def test_an_owners_names_are_whole_and_of_synonyms_the_first_is_written() -> None:
    whole = votes(*(named("red, small") for _ in range(3)), *(named("red, large") for _ in range(2))).result()
    assert whole.label == "red, small"
    first = votes(*(msgspec.structs.replace(answer("n01484850"), label="white shark, man-eater") for _ in range(3)))
    assert first.result() == ("white shark", pytest.approx(0.9), 3)
