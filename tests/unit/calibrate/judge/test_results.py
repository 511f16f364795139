"""Six images under three models, every figure of a result by hand; kinds of images, and how results are written."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.calibrate.fit.chain import Lift, Reading
from jetsel.calibrate.judge.findings import ClassFinding, FittedChain, ImageKind
from jetsel.calibrate.judge.metrics import share_interval, undominated
from jetsel.calibrate.judge.results import Judge, class_findings, describe_image_kinds, find_differing
from jetsel.calibrate.judge.words import (
    clean,
    premodel_in_words,
    promises_in_words,
    short,
    significant,
)
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay
from tests.unit.calibrate.recorded import COSTS_MS, ENERGIES, of_two_classes
from tests.unit.calibrate.report import sample

# Who is right: s on 0, 1, 3; m on 0, 2, 3, 4; l on all but the last, on which nobody is. So the optimum is
# s, s, m, s, m, and none. A model costs 1, 3 or 10 ms.
SIX = of_two_classes(
    [1, 1, -1, -1, 1, 1],
    [1, -1, 1, -1, -1, 1],
    [1, 1, 1, -1, -1, 1],
    classes=[0, 0, 0, 1, 1, 1],
)
CHOICE_MS = 0.5


def features_ms(names: tuple[str, ...]) -> float:
    return {("contrast",): 2.0, ("contrast", "hue1"): 7.0}[names]


def judge(recording: Recording = SIX) -> Judge:
    return Judge(recording, features_ms)


def of(models: list[str], features: tuple[str, ...] = ("contrast",)) -> PolicyReplay:
    """One model a photograph, those named; of the last photograph the choice was in doubt."""
    columns = np.array([SIX.models.index(model) for model in models])
    ran = np.eye(3, dtype=bool)[columns]
    in_doubt = np.arange(6) == 5
    models_ms = np.array([COSTS_MS[model] for model in models])
    answered = SIX.logits[columns, np.arange(6)].argmax(axis=1)
    return PolicyReplay(answered, np.ones(6, bool), models_ms, ran, in_doubt, CHOICE_MS, features)


CHOSEN = ["s", "m", "m", "s", "l", "l"]  # right on 0, 2, 3 and 4


def test_a_policy_by_hand() -> None:
    found = judge().result("chain", of(CHOSEN))
    assert found.name == "chain"
    assert (found.top1, found.top5) == (pytest.approx(4 / 6), 1.0)
    # 1, 3, 3, 1, 10 and 10 ms, and 2.5 ms of features and choice each time.
    assert found.time_ms.mean == pytest.approx(28 / 6 + 2.5)
    assert found.time_ms.p50 == pytest.approx(3 + 2.5)
    assert found.time_ms.p95 == pytest.approx(10 + 2.5)
    assert found.runs == pytest.approx({"s": 2 / 6, "m": 2 / 6, "l": 2 / 6})
    assert found.energy_mj is None


def test_the_ratios_by_hand() -> None:
    found = judge().result("chain", of(CHOSEN))
    # l alone, in 10 ms, is right on five.
    assert found.vs_best_single.points == pytest.approx(-100 / 6)
    assert found.vs_best_single.time_ratio == pytest.approx((28 / 6 + 2.5) / 10)


def test_who_reads_no_features_does_not_pay_for_them() -> None:
    outcomes = judge().outcomes(of(CHOSEN, ()))
    assert outcomes.time_ms.tolist() == [1.5, 3.5, 3.5, 1.5, 10.5, 10.5]
    assert outcomes.correct.tolist() == [True, False, True, True, True, False]
    assert judge().outcomes(of(CHOSEN)).time_ms.tolist() == [3.5, 5.5, 5.5, 3.5, 12.5, 12.5]
    more = judge().outcomes(of(CHOSEN, ("contrast", "hue1")))
    assert more.time_ms.tolist() == [8.5, 10.5, 10.5, 8.5, 17.5, 17.5]


def test_the_bounds_by_hand() -> None:
    found = judge().bounds()
    assert list(found) == ["best single", "oracle"]
    assert {name: bound.top1 for name, bound in found.items()} == pytest.approx({"best single": 5 / 6, "oracle": 5 / 6})
    assert {name: bound.time_ms.mean for name, bound in found.items()} == pytest.approx(
        {"best single": 10, "oracle": 10 / 6}
    )
    oracle = found["oracle"]
    assert oracle.runs == pytest.approx({"s": 4 / 6, "m": 2 / 6, "l": 0})  # the last, on which nobody is right, by s
    assert found["best single"].vs_best_single.time_ratio == 1.0
    assert found["best single"].runs == {"s": 0.0, "m": 0.0, "l": 1.0}


METERED = dataclasses.replace(SIX, energies=ENERGIES)


def test_energies_by_hand() -> None:
    found = judge(METERED).result("chain", of(CHOSEN))
    # 12, 6, 6, 12, 30 and 30 mJ of the models, and 4 W for 2.5 ms of features and choice: 10 mJ each time.
    assert found.energy_mj is not None
    assert found.energy_mj.mean == pytest.approx(96 / 6 + 10)
    assert found.energy_mj.p50 == pytest.approx(12 + 10)
    quick = judge(METERED).outcomes(of(CHOSEN, ())).energy_mj
    assert quick is not None
    assert quick.tolist() == [14.0, 8.0, 8.0, 14.0, 32.0, 32.0]  # 0.5 ms of choice alone


def test_where_energy_is_saved_the_optimum_is_the_most_frugal_that_is_right() -> None:
    by_energy = dataclasses.replace(METERED, objective="energy")
    # m takes less than s: it is the optimum on 0, 2, 3 and 4, s on 1; on the last nobody is right.
    assert judge(by_energy).bounds()["oracle"].runs == pytest.approx({"s": 2 / 6, "m": 4 / 6, "l": 0})


NAMES = ("cat", "dog", "fox")


def run(*answered: int) -> PolicyReplay:
    none = np.zeros(4)
    return PolicyReplay(np.array(answered), none > 0, none, np.ones((4, 1), bool), none > 0, 0.0, ())


def recording(due: list[int], paths: tuple[str, ...]) -> Recording:
    """Of one model, which always says fox, and is the surer the later the image."""
    n = len(due)
    logits = np.zeros((1, n, 3), np.float32)
    logits[0, :, 2] = np.arange(1, n + 1)
    return Recording(("m",), logits, np.array(due), np.zeros((n, 1), np.float32), {"m": 1.0}, paths=paths)


def test_classes_stand_with_the_worst_first() -> None:
    due, answered = np.array([0, 0, 1, 1]), np.array([0, 2, -1, 2])
    assert class_findings(due, answered, NAMES) == [
        ClassFinding("dog", 2, 0.0, {"refused": 1, "fox": 1}),
        ClassFinding("cat", 2, 0.5, {"fox": 1}),
    ]
    given = np.array([True, False, False, False])
    assert [one.refused for one in class_findings(due, answered, NAMES, given)] == [1.0, 0.5]


def test_images_on_which_policies_differ_carry_the_answer_of_each_that_chooses() -> None:
    runs = {"single:m": run(0, 0, 0, 0), "cascade": run(0, 2, -1, 2), "chain": run(0, 1, 1, 2)}
    found = find_differing(recording([0, 0, 1, 1], ("a.jpg", "b.jpg", "c.jpg", "d.jpg")), runs, NAMES, {"m": 2.0})
    answers = [(one.path, one.answers) for one in found.images]
    assert answers == [
        ("b.jpg", {"cascade": "fox", "chain": "dog"}),
        ("c.jpg", {"cascade": "refused", "chain": "dog"}),
    ]
    guess = found.images[1].guesses["m"]
    assert (found.images[1].label, guess.label) == ("dog", "fox")
    assert guess.probability == pytest.approx(np.exp(1.5) / (np.exp(1.5) + 2))  # logit 3, temperature 2


@pytest.mark.parametrize(
    ("right", "photographs", "low", "high"),
    [  # Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),  # 1 less the interval of none of 29: z^2 / (29 + z^2) = 0.1170
    ],
)
def test_wilson_s_interval_by_the_book(right: int, photographs: int, low: float, high: float) -> None:
    found = share_interval(np.arange(photographs) < right)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_photographs_that_are_there_twice_count_once() -> None:
    once = np.arange(100) < 60
    twice, groups = np.repeat(once, 2), np.repeat(np.arange(100), 2)
    grouped, alone = share_interval(twice, groups), share_interval(once)
    assert (grouped.low, grouped.high) == pytest.approx((alone.low, alone.high))
    apart = share_interval(twice)
    assert grouped.high - grouped.low > 1.3 * (apart.high - apart.low)


def test_only_what_nothing_beats_is_on_the_front() -> None:
    slow, good, fast = (4.0, 60.0, "slow"), (2.0, 63.0, "good"), (1.0, 50.0, "fast")
    assert undominated([slow, good, fast, (2.0, 62.0, "worse")]) == [fast, good]


IMAGES = 200
DRAW = np.random.default_rng(1)
FEATURES = ("avg_perceived_brightness", "contrast", "hue1")


def recorded(dark: np.ndarray) -> Recording:
    features = DRAW.random((IMAGES, 3)).astype(np.float32)
    features[:, 0] = np.where(dark, 20, 120) + 10 * features[:, 0]
    logits = np.zeros((2, IMAGES, 3), np.float32)
    return Recording(
        ("m", "m-night"), logits, np.zeros(IMAGES, int), features, {"m": 1.0, "m-night": 1.0}, feature_names=FEATURES
    )


def begins_with(night: np.ndarray) -> PolicyReplay:
    ran = np.stack([~night, night], axis=1)
    nothing = np.zeros(IMAGES, bool)
    return PolicyReplay(np.zeros(IMAGES, int), nothing, np.ones(IMAGES), ran, nothing, 0.1, FEATURES)


def test_each_models_images_are_described_by_the_feature_that_tells_them_best() -> None:
    dark = np.arange(IMAGES) % 4 == 0
    assert describe_image_kinds(recorded(dark), begins_with(dark)) == [
        ImageKind("m", 0.75, "bright"),
        ImageKind("m-night", 0.25, "dark"),
    ]


@pytest.mark.parametrize("night", [np.arange(IMAGES) % 2 == 0, np.zeros(IMAGES, bool), np.arange(IMAGES) < 2])
def test_images_that_no_feature_tells_and_all_and_few_are_no_kind(night: np.ndarray) -> None:
    assert describe_image_kinds(recorded(np.arange(IMAGES) % 4 == 0), begins_with(night)) == []


def test_the_report_says_which_kinds_were_found() -> None:
    lift = Lift(Reading(("noise",), 101), 4.8, 0.3, adds=True)
    chain = FittedChain(lift, True, 0.2, kinds=[ImageKind("m-night", 0.12, "dark")])
    assert premodel_in_words(chain).endswith(
        " 12 % of the images are dark: these go to m-night first. The other 88 % go to other models first; no single "
        "feature describes them."
    )


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
    assert said.startswith("The premodel: choosing a path by 101 neighbours in 2 features adds +1.5 points")
    assert said.endswith("features and choice take 0.148 ms.")
    withheld = replace(sample.CHAIN, offered=False, chooser_mj=0.51)
    assert premodel_in_words(withheld).endswith(
        "0.148 ms and 0.510 mJ. That may be chance, so chain is listed for comparison only; --policy chain installs it "
        "all the same."
    )
