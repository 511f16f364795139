"""What answers take by the calibration, and what that adds up to."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jetsel.artefact.calibration import MeasuredEnergy
from jetsel.daemon.estimates import NO_CALIBRATION, Estimates, estimated_mj
from jetsel.wire import Ran
from jetsel.wire.power import ModelEnergy, PolicyEnergy
from tests.unit.daemon.families import calibration_of, put_family

ENERGIES = {"energy": MeasuredEnergy(mean_mj={"s": 10.0, "l": 40.0}, chooser_mj=2.0)}


def calibration(tmp_path: Path, **fields: Any) -> Any:
    return calibration_of(put_family(tmp_path / "cats", "cats", "s", "l"), "cats", **fields)


def ran(*models: str) -> list[Ran]:
    return [Ran(model, "", 0.9, 5.0, 1) for model in models]


def answer(policy: str, energy_mj: float | None, *models: str) -> Any:
    return SimpleNamespace(
        family="cats",
        policy=policy,
        energy_mj=energy_mj,
        ran=ran(*models),
        out_of_conditions=[] if energy_mj else ["another power mode"],
    )


def test_an_estimate_is_the_sum_of_what_ran_and_of_choosing_where_features_were_read(tmp_path: Path) -> None:
    made = calibration(tmp_path, **ENERGIES)
    assert estimated_mj(ran("s", "l"), False, made, None) == (50.0, None)
    assert estimated_mj(ran("s"), True, made, None) == (12.0, None)


def test_why_there_is_no_estimate_is_said(tmp_path: Path) -> None:
    assert estimated_mj(ran("s"), False, None, None) == (None, NO_CALIBRATION)
    assert "(no sensor)" in str(
        estimated_mj(ran("s"), False, calibration(tmp_path, energy=MeasuredEnergy(reason="no sensor")), None)
    )
    made = calibration(tmp_path, **ENERGIES)
    assert "no energy of xl" in str(estimated_mj(ran("s", "xl"), False, made, None))


def test_a_run_on_the_edge_takes_what_sending_takes(tmp_path: Path) -> None:
    made, there = calibration(tmp_path, **ENERGIES), Ran("edge:xl", "", 0.9, 50.0, 1, None, 60_000, 2_000)
    assert estimated_mj([*ran("s"), there], False, made, 0.5) == (pytest.approx(10 + 62 * 0.5), None)
    energy_mj, reason = estimated_mj([*ran("s"), there], False, made, None)
    assert energy_mj is None
    assert "sending 62 kB" in str(reason)


def test_a_run_that_nobody_waited_for_counts_too() -> None:
    sums = Estimates()
    sums.add_unused("cats", "s", 10.0)
    sums.add_unused("cats", "l", None)
    assert sums.models() == [ModelEnergy("cats", "s", 1, 0.01, 10.0), ModelEnergy("cats", "l", 1, None, None)]
    assert sums.totals() == (0.01, 0, 0)


def test_models_policies_and_choosing_add_up(tmp_path: Path) -> None:
    made, sums = calibration(tmp_path, **ENERGIES), Estimates()
    sums.add(answer("chain", 12.0, "s"), True, made)
    sums.add(answer("chain", 52.0, "s", "l"), True, made)
    sums.add(answer("single:l", 40.0, "l"), False, made)
    sums.add(answer("single:l", None, "l"), False, made)
    assert sums.models() == [
        ModelEnergy("cats", "s", 2, pytest.approx(0.02), pytest.approx(10.0)),
        ModelEnergy("cats", "l", 3, pytest.approx(0.08), pytest.approx(40.0)),
    ]
    assert sums.policies() == [
        PolicyEnergy("cats", "chain", 2, pytest.approx(0.064), pytest.approx(32.0)),
        PolicyEnergy("cats", "single:l", 2, pytest.approx(0.04), pytest.approx(40.0)),
    ]
    assert sums.chooser.known_j == pytest.approx(0.004)
    assert sums.totals() == (pytest.approx(0.104), 4, 1)
