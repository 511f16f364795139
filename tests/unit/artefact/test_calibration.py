"""Which calibrations contradict themselves, and which do not belong to what is served."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, Part, as_plain, check, verify
from jetsel.artefact.parts import Links, Rung
from jetsel.base.errors import CalibrationError
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.registry import catalogue
from tests.unit.policies.animals import TWO

ENERGIES = {"small": 9.0, "middle": 2.0, "large": 30.0}


def test_what_models_cost_is_of_the_objective(calibration: Calibration) -> None:
    assert calibration.costs == calibration.costs_ms
    by_energy = msgspec.structs.replace(calibration, objective="energy", energies_mj=ENERGIES)
    verify(by_energy)
    assert by_energy.costs == ENERGIES
    # All three are right on the second photograph: the optimum is the fastest, or the most frugal.
    chosen = []
    for one in (msgspec.structs.replace(calibration, k=1), msgspec.structs.replace(by_energy, k=1)):
        chain = catalogue(list(one.identities), one)["chain"]
        assert isinstance(chain, ChainPolicy)
        chosen.append(chain.chain.choose(np.array([3.0, -1.0], np.float32)).model)
    assert chosen == ["small", "middle"]


def read_as_policies(calibration: Calibration) -> None:
    """Do what the daemon does with one that was read."""
    verify(calibration)
    catalogue(list(calibration.identities), calibration)


def rungs(*rungs: Rung) -> Part:
    return Part(rungs)


def links(*models: str, **changed: NDArray[np.float32]) -> Part:
    return Part(Links(models), TWO | changed)


@pytest.mark.parametrize(
    ("name", "part", "reason"),
    [
        ("cascade", rungs(Rung("small", 0.5)), "the last rung must accept all"),
        ("cascade", rungs(Rung("tiny", 0.0)), "'tiny' is not in list"),
        ("chain", links("small", "small"), "without duplicates"),
        ("chain", links("small", minimum=np.full(2, 99, np.float32)), "above its maximum"),
    ],
)
def test_a_part_that_does_not_fit_is_named_with_its_policy(
    calibration: Calibration, name: str, part: Part, reason: str
) -> None:
    with pytest.raises(CalibrationError, match=f"{name}.*{reason}"):
        read_as_policies(msgspec.structs.replace(calibration, parts={name: part}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"costs_ms": {"small": 1.0, "middle": 2.0, "huge": 3.0}}, "costs_ms"),
        ({"k": 5}, "chain: k is 5"),
        ({"right": np.zeros((4, 2), bool)}, r"right must be \(images, 3\), not \(4, 2\)"),
        ({"energies_mj": {"small": 1.0}}, "energies_mj must name exactly"),
        ({"objective": "energy"}, "energy is its objective, and energies_mj names no model"),
    ],
)
def test_a_contradiction_is_named(calibration: Calibration, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CalibrationError, match=reason):
        read_as_policies(msgspec.structs.replace(calibration, **change))


def test_what_it_was_made_for_is_accepted_and_more_models_too(calibration: Calibration) -> None:
    check(calibration, "a" * 64, calibration.identities, "f" * 64, 64)
    check(calibration, "a" * 64, calibration.identities | {"extra": "9" * 64}, "f" * 64, 64)


def test_every_difference_is_named_with_the_repair(calibration: Calibration) -> None:
    with pytest.raises(CalibrationError) as raised:
        check(calibration, "b" * 64, {"small": "1" * 64, "middle": "7" * 64}, "e" * 64, 96)
    message = str(raised.value)
    assert "made for other models: other labels" in message
    assert "another version of the features" in message
    assert "model middle has changed" in message
    assert "model large is neither served here" in message
    assert "images decoded for 64 px, now for 96" in message
    assert "model small" not in message
    assert "Run `jetsel calibrate" in message


def test_as_plain_values_one_other_value_in_an_array_shows(
    calibration: Calibration,
) -> None:
    plain = as_plain(calibration)
    assert tuple(plain) == calibration.__struct_fields__
    assert msgspec.json.decode(msgspec.json.encode(plain))["temperatures"] == calibration.temperatures
    right = calibration.right.copy()
    assert as_plain(msgspec.structs.replace(calibration, right=right)) == plain
    right[0, 0] = False
    assert as_plain(msgspec.structs.replace(calibration, right=right)) != plain
