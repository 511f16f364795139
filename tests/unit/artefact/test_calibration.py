"""Which calibrations contradict themselves or do not belong to what is served; and the way back to earlier ones."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, CascadeFacts, ChainFacts, MeasuredEnergy, PolicyPart, Rung, verify
from jetsel.artefact.installed import Installed, current, history, install, rollback
from jetsel.base.errors import CalibrationError
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.registry import catalogue
from tests.unit.policies.animals import PATHS, TWO

ENERGIES = {"small": 9.0, "middle": 2.0, "large": 30.0}


def test_what_models_cost_is_of_the_objective(calibration: Calibration) -> None:
    assert calibration.costs == calibration.costs_ms
    by_energy = msgspec.structs.replace(calibration, objective="energy", energy=MeasuredEnergy(mean_mj=ENERGIES))
    verify(by_energy)
    assert by_energy.costs == ENERGIES
    costs = []
    for one in (calibration, by_energy):
        chain = catalogue(list(one.identities), one)["chain"]
        assert isinstance(chain, ChainPolicy)
        costs.append(chain.chain.overall.cost.tolist())
    # Three of four images go on from small to large on the third path: 0.5 + 3 / 4 x 4 ms, 9 + 3 / 4 x 30 mJ.
    assert costs == [[0.5, 1.0, 3.5], [9.0, 2.0, 31.5]]


def read_as_policies(calibration: Calibration) -> None:
    """Do what the daemon does with one that was read."""
    verify(calibration)
    catalogue(list(calibration.identities), calibration)


def rungs(*rungs: Rung) -> PolicyPart:
    return PolicyPart(CascadeFacts(rungs, ()))


def chain(paths: Sequence[tuple[Rung, ...]] = PATHS, k: int = 3, **changed: NDArray[Any]) -> PolicyPart:
    return PolicyPart(ChainFacts(tuple(paths), ("contrast", "hue1"), k, 0.25), TWO | changed)


@pytest.mark.parametrize(
    ("name", "part", "reason"),
    [
        ("cascade", rungs(Rung("small", 0.5)), "the last rung of cascade must accept all"),
        ("cascade", rungs(Rung("tiny", 0.0)), "'tiny' is not in list"),
        (
            "cascade",
            PolicyPart(CascadeFacts((Rung("small", 0.0),), ((),))),
            "the last rung of cascade:1 must accept all",
        ),
        ("chain", chain(PATHS[:2]), "for 3 paths, not 2"),
        ("chain", chain(points=np.zeros((4, 3), np.float32)), "3 features, not 2"),
        ("chain", chain(k=5), "k is 5"),
        ("chain", chain(right=np.zeros((3, 3), bool)), "right is"),
        ("chain", chain(minimum=np.full(2, 99, np.float32)), "above its maximum"),
    ],
)
def test_a_part_that_does_not_fit_is_named_with_its_policy(
    calibration: Calibration, name: str, part: PolicyPart, reason: str
) -> None:
    with pytest.raises(CalibrationError, match=f"{name}.*{reason}"):
        read_as_policies(msgspec.structs.replace(calibration, parts={name: part}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"costs_ms": {"small": 1.0, "middle": 2.0, "huge": 3.0}}, "costs_ms"),
        ({"energy": MeasuredEnergy(mean_mj={"small": 1.0})}, "energy.mean_mj must name exactly"),
        ({"objective": "energy"}, "energy is its objective, and energy.mean_mj names no model"),
    ],
)
def test_a_contradiction_is_named(calibration: Calibration, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CalibrationError, match=reason):
        read_as_policies(msgspec.structs.replace(calibration, **change))


def put(calibration: Calibration, folder: Path, created: str) -> Installed:
    return install(msgspec.structs.replace(calibration, created=created), folder, "animals")


def test_one_that_is_gone_has_a_reason_is_listed_and_gives_its_number_to_no_other(
    calibration: Calibration, tmp_path: Path
) -> None:
    for created in ("April", "May"):
        put(calibration, tmp_path, created)
    shutil.rmtree(tmp_path / "animals" / "2")
    gone = current(tmp_path, "animals")
    assert gone is not None
    assert gone.calibration is None
    assert "No such file" in str(gone.reason)
    with pytest.raises(CalibrationError, match="No such file"):
        gone.usable_calibration()
    assert [one.number for one in history(tmp_path, "animals")] == [2, 1], "the one in use is listed, gone or not"
    assert put(calibration, tmp_path, "June").number == 3, "no number is ever given twice"


@pytest.mark.parametrize("family", ["..", "a/b", "", ".hidden", "Animals"])
def test_no_name_of_a_family_leads_out_of_the_folder(calibration: Calibration, tmp_path: Path, family: str) -> None:
    with pytest.raises(CalibrationError, match="is not a valid family name"):
        install(msgspec.structs.replace(calibration, family=family or "x"), tmp_path, family)
    assert list(tmp_path.iterdir()) == []


def test_a_calibration_of_another_family_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="of family animals, not plants: calibrate plants"):
        install(calibration, tmp_path, "plants")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_not_there_is_told_with_those_that_are(calibration: Calibration, tmp_path: Path) -> None:
    put(calibration, tmp_path, "May")
    with pytest.raises(CalibrationError, match="no calibration number 7: there are 0, 1"):
        rollback(tmp_path, "animals", 7, {})
