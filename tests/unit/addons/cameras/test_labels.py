"""A label holds once it has stayed for its frames; a flicker never does."""

from __future__ import annotations

from jetsel.addons.cameras.labels import Labels, reported_label
from tests.unit.addons.cameras.answers import answer


def test_a_label_holds_once_it_has_stayed_and_says_since_when_and_what_was_before() -> None:
    labels = Labels(3)
    found = [labels.see(answer(one, 0.5 + i / 10), float(i)) for i, one in enumerate(["cat"] * 4 + ["dog"] * 3)]
    assert [i for i, change in enumerate(found) if change] == [2, 6]
    assert found[2] is not None
    assert (found[2].answer.probability, found[2].previous, found[2].since_s) == (0.7, None, 0.0)
    assert found[6] is not None
    assert (found[6].answer.wnid, found[6].previous, found[6].since_s) == ("dog", "cat, a synonym", 4.0)


def test_a_flicker_is_no_change() -> None:
    labels = Labels(2)
    shown = ["cat", "cat", "dog", "cat", "dog", "cow", "dog", "cat"]
    changes = [labels.see(answer(one), float(i)) for i, one in enumerate(shown)]
    assert [i for i, change in enumerate(changes) if change] == [1]


def test_it_is_settled_unless_another_label_is_on_its_way() -> None:
    labels = Labels(2)
    settled = [labels.is_settled]
    for shown in ("cat", "cat", "dog", "cat", "dog", "dog"):
        labels.see(answer(shown), 0.0)
        settled.append(labels.is_settled)
    assert settled == [False, False, True, False, True, False, True]


def test_what_a_promise_does_not_cover_is_one_label_whatever_class_is_likely() -> None:
    labels = Labels(2)
    doubtful = [answer(one, in_doubt=True, wrong_at_most=0.05) for one in ("cat", "dog", "cow")]
    changes = [labels.see(one, float(i)) for i, one in enumerate(doubtful)]
    assert [change is not None for change in changes] == [False, True, False]
    assert reported_label(doubtful[1]) == ("unknown", None)
    assert labels.see(answer("cow", in_doubt=True), 3.0) is None, "without a promise the fallback's answer counts"
    change = labels.see(answer("cow", in_doubt=True), 4.0)
    assert change is not None
    assert (reported_label(change.answer).id, change.previous) == ("cow", "unknown")


def test_a_class_called_unknown_is_another_label_than_doubt() -> None:
    labels = Labels(1)
    changes = [labels.see(one, 0.0) for one in (answer("cat", in_doubt=True, wrong_at_most=0.05), answer("unknown"))]
    assert [change is not None and reported_label(change.answer).id for change in changes] == [None, "unknown"]
