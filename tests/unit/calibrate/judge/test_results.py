"""Six images under three models, every figure of a result by hand; where a policy goes wrong; and kinds of images."""

import dataclasses

import numpy as np
import pytest

from jetsel.calibrate.judge.findings import ClassFinding, ImageKind
from jetsel.calibrate.judge.results import Judge, class_findings, describe_image_kinds, find_differing
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay
from tests.unit.calibrate.recorded import COSTS_MS, ENERGIES, of_two_classes

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
