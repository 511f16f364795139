"""Numbers as they are written, and what 'right' and the times are called."""

import pytest
from msgspec.structs import replace

from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.calibrate.fit.chain import Lift, Reading
from jetsel.calibrate.judge.findings import FittedChain, ImageKind
from jetsel.calibrate.judge.words import (
    change,
    clean,
    percent,
    premodel_in_words,
    promises_in_words,
    short,
    signed,
    significant,
)
from tests.unit.calibrate.report import sample


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.04212, "0.0421"),
        (1.5, "1.50"),
        (12.345, "12.3"),
        (123.4, "123"),
        (1234.5, "1234"),
        (0.0, "0"),
        (None, "unknown"),
    ],
)
def test_three_digits_are_significant(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_shares_points_and_ratios() -> None:
    assert percent(0.6213) == "62.1"
    assert [signed(1.24), signed(-0.3), signed(-0.01)] == ["+1.2", "\u22120.3", "0.0"]
    assert [change(0.64), change(1.3), change(1.0)] == ["\u221236\u00a0%", "+30\u00a0%", "0\u00a0%"]


def test_what_a_page_cannot_carry_is_replaced_and_a_long_name_keeps_its_ends() -> None:
    assert clean("a\x00b\udc80c\u202ed") == "a\ufffdb\ufffdc\ufffdd"
    assert short("xs") == "xs"
    assert short("a model with a very long name, version 12") == "a model wit\u2026 version 12"


def test_promises_are_one_sentence() -> None:
    kept = tuple(Promise(level, 1.0, (), answered=share, wrong=0.01) for level, share in ((0.05, 0.704), (0.1, 0.82)))
    missing = (MissingPromise(0.01, None), MissingPromise(0.02, 1200))
    said = "cascade answers 70 % of the images if at most 5 % of the answers may be wrong and 82 % if at most 10 %."
    assert promises_in_words("cascade", Promises(kept, missing, 300)) == said
    said = "s cannot promise an error rate, not even 2 %: it needs about 1,200 images in all."
    assert promises_in_words("s", Promises((), missing, 300)) == said


def test_the_premodel_is_one_sentence_with_what_it_adds_and_costs() -> None:
    said = premodel_in_words(sample.CHAIN)
    assert said.startswith("The premodel: choosing a path by 101 neighbours in n_keypoints and contrast adds +1.5")
    assert said.endswith("features and choice take 0.148 ms.")
    withheld = replace(sample.CHAIN, offered=False, chooser_mj=0.51)
    assert premodel_in_words(withheld).endswith(
        "0.148 ms and 0.510 mJ. That may be chance, so chain is listed for comparison only; --policy chain installs it "
        "all the same."
    )


def test_the_report_says_which_kinds_were_found() -> None:
    lift = Lift(Reading(("noise",), 101), 4.8, 0.3, adds=True)
    chain = FittedChain(lift, True, 0.2, kinds=[ImageKind("m-night", 0.12, "dark")])
    assert premodel_in_words(chain).endswith(
        " 12 % of the images are dark: these go to m-night first. The other 88 % go to other models first; no single "
        "feature describes them."
    )
