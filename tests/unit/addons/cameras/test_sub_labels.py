"""Votes about a tracked object: three or more, of which 60 % agree, and what is never written."""

from __future__ import annotations

import msgspec
import pytest

from jetsel.addons.cameras.sub_labels import Votes
from jetsel.wire import Answer
from tests.unit.addons.cameras.answers import answer


def votes(*answers: Answer) -> Votes:
    found = Votes()
    for one in answers:
        found.add(one)
    return found


def shown(*wnids: str) -> Votes:
    return votes(*(answer(wnid) for wnid in wnids))


def named(name: str) -> Answer:
    """An answer of a family whose classes have names alone."""
    return msgspec.structs.replace(answer(name), label=name)


def test_a_sub_label_has_the_mean_probability_of_the_answers_that_gave_it() -> None:
    result = votes(answer("jay", 0.5), answer("rook", 0.9), answer("jay", 1.0)).result()
    assert result == ("jay", 0.75, 3)


@pytest.mark.parametrize(
    ("wnids", "words"),
    [
        (("jay",) * 2, "only 2 images"),
        (("jay", "jay", "rook", "crow"), "2 of 4 answers agree on jay"),
        (("jay",) * 3 + ("rook",) * 3, "3 of 6 answers agree on jay"),
        (("jay",) * 9 + ("rook",) * 7, "9 of 16 answers agree on jay"),
    ],
    ids=["too few", "2 of 4", "half", "9 of 16"],
)
def test_fewer_than_three_or_60_percent_give_none(wnids: tuple[str, ...], words: str) -> None:
    found = shown(*wnids)
    assert found.result() is None
    assert words in str(found.why_none())


def test_60_percent_are_enough() -> None:
    for n, of in ((3, 3), (3, 5), (6, 10), (9, 15)):
        result = shown(*["jay"] * n, *["rook"] * (of - n)).result()
        assert result is not None
        assert (result.label, result.votes) == ("jay", of)


def test_doubt_is_never_written_and_a_class_called_unknown_is() -> None:
    doubtful = votes(*(answer(one, in_doubt=True, wrong_at_most=0.05) for one in ("jay", "rook", "crow")))
    assert doubtful.result() is None
    assert "3 of 3 answers are in doubt" in str(doubtful.why_none())
    written = votes(*(named("unknown") for _ in range(3))).result()
    assert written is not None
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
    assert whole is not None
    assert whole.label == "red, small"
    first = votes(*(msgspec.structs.replace(answer("n01484850"), label="white shark, man-eater") for _ in range(3)))
    assert first.result() == ("white shark", pytest.approx(0.9), 3)
