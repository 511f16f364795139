"""The whole of a calibration on a drawn recording: fitted, compared, judged, stored and shown."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jetsel.artefact.coding import read, save
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.calibrating import Calibrated, calibrate
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record.recording import Energies, LoadedRecording, Recording, Times
from jetsel.calibrate.record.replay import replay_all
from jetsel.features import NAMES as ALL_NAMES
from jetsel.policies.registry import USUAL, catalogue
from jetsel.site.calibration_in_use import check_fits
from jetsel.site.site import Incumbent
from tests.unit.calibrate.recorded import bound

NAMES = ALL_NAMES[:4]  # few, so that choosing among them takes no time
COSTS_MS = {"s": 1.0, "m": 3.0, "l": 10.0}
HASHES = {"s": "a" * 64, "m": "b" * 64, "l": "c" * 64}
CLASSES = 7
ORDER = InstallRequest()
FEATURES_MS = 0.01  # each
LEFT_OUT = [("1.jpg", "unreadable: empty"), ("2.jpg", "unreadable: cut off")]


def of_features(names: tuple[str, ...]) -> float:
    return FEATURES_MS * len(names)


def drawn(photographs: int = 500) -> LoadedRecording:
    """Half of the photographs are easy: all models are sure and right; on the others only the dear ones are any good.

    The first feature tells which is which, and the embedding holds it too.
    """
    draw = np.random.default_rng(7)
    true = draw.integers(0, CLASSES, photographs)
    easy = draw.random(photographs) < 0.5
    logits = draw.normal(size=(3, photographs, CLASSES)).astype(np.float32)
    for of_model, strength in zip(logits, (0.5, 2.5, 4.0), strict=True):
        of_model[np.arange(photographs), true] += np.where(easy, 8.0, strength)
    features = draw.random((photographs, len(NAMES)), dtype=np.float32)
    features[:, 0] = easy + 0.2 * draw.random(photographs)
    embeddings = np.stack([easy, draw.random(photographs)], axis=1).astype(np.float16)
    recording = Recording(tuple(COSTS_MS), logits, true, features, COSTS_MS, embeddings, feature_names=NAMES)
    times = Times(of_features(NAMES), {"board": "drawn"}, "a fan stood")
    return LoadedRecording(recording, times, bound(HASHES), [f"class {number}" for number in range(CLASSES)], LEFT_OUT)


def calibrated(loaded: LoadedRecording, order: InstallRequest = ORDER) -> Calibrated:
    return calibrate(loaded, order, of_features, lambda *_: None)


@pytest.fixture(scope="module")
def found() -> Calibrated:
    return calibrated(drawn())


def test_the_cascade_of_an_easy_half_is_found_and_beats_the_best_single_model(found: Calibrated) -> None:
    findings = found.findings
    assert findings.calibration.rival == "single:l"
    assert findings.installed
    assert findings.verdict.startswith(f"{findings.winner} is the best choice. Compared with single:l, it takes ")
    winner = findings.comparison.policies[findings.winner]
    assert winner.time_ms.mean < 0.75 * COSTS_MS["l"]
    assert winner.vs_best_single.time_ratio == pytest.approx(winner.time_ms.mean / COSTS_MS["l"], rel=0.01)


def test_what_was_found_is_complete(found: Calibrated) -> None:
    findings = found.findings
    assert (findings.skipped, findings.noisy) == ({"unreadable": 2}, "a fan stood")
    assert (findings.calibration.images.count, findings.calibration.costs_ms) == (500, COSTS_MS)
    assert findings.left_out == LEFT_OUT
    assert findings.conditions == {"board": "drawn"}
    comparison = findings.comparison
    others = {kind.name for kind in USUAL}
    assert set(comparison.policies) == {f"single:{model}" for model in COSTS_MS} | others
    assert set(comparison.bounds) == {"best single", "oracle"}
    assert comparison.front.keys() <= found.calibration.figures.keys()
    assert 0 < sum(one.images for one in findings.classes) <= 500
    assert comparison.best_single == "l"
    assert findings.differing.total >= len(findings.differing.images) > 0
    assert findings.current is None  # nothing is in use


def test_the_artefact_is_stored_read_back_and_offers_what_it_names(found: Calibrated, tmp_path: Path) -> None:
    save(found.calibration, tmp_path / "stored")
    found_again = read(tmp_path / "stored")
    check_fits(found_again, SimpleNamespace(labels=SimpleNamespace(sha256="d" * 64), decode_px=64), HASHES)
    policies = catalogue(tuple(COSTS_MS), found_again)
    assert found_again.default_policy in policies
    points = {name for name in policies if name.startswith(("cascade:", "chain:"))}
    assert set(policies) - points == set(found.findings.comparison.policies)
    assert points
    assert points <= found_again.figures.keys()
    assert (found_again.because, found_again.rival) == (found.findings.verdict, "single:l")
    chain = found.findings.comparison.chain
    assert chain is not None
    assert found_again.parts["chain"].arrays["points"].shape == (500, len(chain.lift.reading.features))
    chosen = found_again.figures[found.findings.winner]
    assert chosen["mean_ms"] == found.findings.comparison.policies[found.findings.winner].time_ms.mean


@pytest.mark.slow
def test_what_is_in_use_is_the_rival_and_is_not_better_than_itself(found: Calibrated) -> None:
    winner = found.findings.winner
    again = calibrated(drawn(), dataclasses.replace(ORDER, in_use=Incumbent(winner, found.calibration)))
    assert again.calibration.rival == f"the {winner} of {found.calibration.created}"
    assert again.findings.winner == winner
    assert not again.findings.installed


@pytest.mark.slow
def test_a_model_in_use_that_is_no_better_is_replaced_and_named() -> None:
    loaded = drawn()
    equal = dataclasses.replace(loaded.recording, logits=loaded.recording.logits[[0, 0, 0]])
    order = dataclasses.replace(ORDER, in_use=Incumbent("single:l"))
    found = calibrated(dataclasses.replace(loaded, recording=equal), order)
    assert (found.findings.winner, found.calibration.rival, found.findings.installed) == ("single:s", "single:l", True)
    assert found.findings.current == found.findings.comparison.policies["single:l"]
    assert found.findings.verdict.startswith(
        "single:s is a better choice than single:l, the policy in use: it takes 90 % less time"
    )


def test_what_is_in_use_stays_if_few_images_cannot_show_a_better_choice(found: Calibrated) -> None:
    in_use = Incumbent(found.findings.winner, found.calibration)
    few = calibrated(drawn(100), dataclasses.replace(ORDER, in_use=in_use))
    assert not few.findings.installed
    assert few.findings.current is not None
    assert f"{few.findings.winner} is not shown to be a better choice than" in few.findings.verdict


def test_the_policy_that_is_asked_for_becomes_the_default() -> None:
    found = calibrated(drawn(200), dataclasses.replace(ORDER, policy="single:m"))
    assert (found.findings.winner, found.calibration.default_policy) == ("single:m", "single:m")
    with pytest.raises(CalibrationError, match="--policy: the family has no policy 'climb'; it has single:s"):
        calibrated(drawn(200), dataclasses.replace(ORDER, policy="climb"))


def test_answers_of_a_model_in_place_of_labels_are_said_so_everywhere() -> None:
    loaded = drawn(60)
    answers = loaded.recording.logits[0].argmax(axis=1)
    recording = dataclasses.replace(loaded.recording, classes=answers)
    one = calibrated(dataclasses.replace(loaded, recording=recording, labels_from="s"))
    assert one.findings.winner == one.calibration.rival == "single:s"
    assert one.findings.verdict.startswith(
        "no policy is proven to be a better choice yet, so single:s goes on answering"
    )
    assert "right means agreement with s" in one.findings.verdict
    assert one.findings.calibration.images.labels_from == one.calibration.images.labels_from == "s"


def test_a_chain_is_offered_if_its_features_tell_what_is_easy_and_keeps_the_accuracy_in_less_time() -> None:
    loaded = drawn()
    costs_ms = {"s": 1.0, "l": 10.0}
    two = dataclasses.replace(
        loaded.recording,
        models=tuple(costs_ms),
        logits=np.asarray(loaded.recording.logits)[[0, 2]],
        costs_ms=costs_ms,
    )
    found = calibrated(dataclasses.replace(loaded, recording=two))
    assert NAMES[0] in found.calibration.parts["chain"].facts.features
    chain, best = (found.findings.comparison.policies[name] for name in ("chain", "single:l"))
    assert chain.top1 > best.top1 - 0.01
    assert chain.time_ms.mean < 0.7 * best.time_ms.mean


@pytest.mark.slow
def test_a_chain_whose_features_say_nothing_is_shown_and_not_offered() -> None:
    loaded = drawn(300)
    noise = np.random.default_rng(11).random((300, len(NAMES)), dtype=np.float32)
    blind = dataclasses.replace(loaded, recording=dataclasses.replace(loaded.recording, features=noise))
    found = calibrated(blind)
    assert "chain" not in found.calibration.parts
    comparison = found.findings.comparison
    assert "chain" in comparison.policies
    assert comparison.chain is not None
    assert not comparison.chain.offered
    named = calibrated(blind, dataclasses.replace(ORDER, policy="chain"))
    assert named.calibration.default_policy == "chain"  # an owner who names it has it


def test_a_goal_of_energy_without_energies_is_refused() -> None:
    for goal in (Goal("energy"), Goal(max_energy_mj=3.0)):
        with pytest.raises(CalibrationError, match="the goal needs energy, but energy is unknown: no meter"):
            calibrated(drawn(60), dataclasses.replace(ORDER, goal=goal))


@pytest.mark.slow
def test_a_limit_is_kept_by_what_wins_and_by_what_is_asked_for() -> None:
    least, most = COSTS_MS["m"], COSTS_MS["l"]
    within = calibrated(
        drawn(200), dataclasses.replace(ORDER, goal=Goal(max_time_ms=most / 2), in_use=Incumbent("single:l"))
    )
    result = within.findings.comparison.policies[within.findings.winner]
    assert within.findings.installed
    assert result.time_ms.mean <= most / 2
    nothing = calibrated(drawn(200), dataclasses.replace(ORDER, goal=Goal(max_time_ms=least / 100)))
    assert nothing.findings.is_allowed is nothing.findings.installed is False
    asked = dataclasses.replace(ORDER, goal=Goal(max_time_ms=most / 2), policy="single:l")
    assert not calibrated(drawn(200), asked).findings.installed


def metered(loaded: LoadedRecording) -> LoadedRecording:
    """On this board the slower m takes least energy, and features take 5 W."""
    energies = Energies({"s": 40.0, "m": 4.0, "l": 50.0}, {"s": 1.0, "m": 0.1, "l": 2.0}, 5.0)
    recording = dataclasses.replace(loaded.recording, energies=energies)
    times = dataclasses.replace(loaded.times, energy_reason=None)
    return dataclasses.replace(loaded, recording=recording, times=times)


@pytest.mark.slow
def test_a_calibration_by_energy_is_stored_read_back_and_chooses_by_energy(tmp_path: Path) -> None:
    frugal = calibrated(metered(drawn()), dataclasses.replace(ORDER, goal=Goal("energy")))
    assert frugal.findings.installed
    assert "less energy" in frugal.findings.verdict
    save(frugal.calibration, tmp_path / "stored")
    found_again = read(tmp_path / "stored")
    assert (found_again.objective, found_again.energy.reason) == ("energy", None)
    assert found_again.energy.mean_mj == found_again.costs == {"s": 40.0, "m": 4.0, "l": 50.0}
    assert found_again.energy.half_width_mj == {"s": 1.0, "m": 0.1, "l": 2.0}
    assert found_again.costs_ms == COSTS_MS
    assert found_again.figures["single:m"]["mean_mj"] == pytest.approx(4.0, abs=0.05)
    loaded = metered(drawn())
    policy = catalogue(tuple(COSTS_MS), found_again)["cascade"]
    rows = range(100)
    ran = replay_all(policy, loaded.recording, rows, found_again.temperatures, "l").ran.mean(axis=0)
    assert ran[0] == 0  # what is easy m gets right as well, for a tenth of the energy
