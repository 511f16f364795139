"""Which calibrations contradict themselves, and which do not belong to what is served."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, CascadeFacts, ChainFacts, MeasuredEnergy, PolicyPart, Rung, verify
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
