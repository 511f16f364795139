"""What `jetsel status` says of power: the board's, the budget, what it is not sure of, and who took what."""

from __future__ import annotations

import msgspec
from rich.console import Console

from jetsel.cli.power_status import energy_tables, power_lines
from jetsel.wire.power import (
    BatteryStatus,
    BudgetStatus,
    DroppedRail,
    EstimatesJudged,
    ModelEnergy,
    PolicyEnergy,
    PowerStatus,
)

POWER = PowerStatus(
    reason=None,
    total_of=["VDD_IN"],
    watts=7.256,
    mean_w=6.5,
    idle_w=3.1,
    idle_reason=None,
    rate_hz=19.96,
    dropped=[DroppedRail("VDD_4V0_WIFI", "Input/output error")],
    power_mode="0 MAXN",
    out_of_conditions=["idle power: power mode changed from '1 MAXQ' to '0 MAXN'"],
    budget=BudgetStatus(6.0, 1, "the most expensive model of each family run only where a request names them"),
    models=[ModelEnergy("f", "m", 20, 1.25, 62.5), ModelEnergy("f", "[red]", 3, None, None)],
    policies=[
        PolicyEnergy("f", "cascade", 18, 1500.0, 83_333.0, -0.0204),
        PolicyEnergy("f", "single:m", 2, 0.5, 250.0, None),
    ],
    chooser_j=0.11,
    chooser_share=0.11,
    judged=EstimatesJudged(1650.0, 75.0, 3600.0, 1500.5, 20, 2, 1.0996),
    jetpack="4.6.1",
    gpu_load=0.37,
    battery=BatteryStatus(18.4, True, None, 20.0, "requests are answered by what takes least energy"),
    temperatures_c={"BCPU-therm": 41.2, "thermal-fan-est": 40.0},
)
NOTHING = PowerStatus(
    reason="no power sensor under /sys",
    total_of=[],
    watts=None,
    mean_w=None,
    idle_w=None,
    idle_reason=None,
    rate_hz=None,
    dropped=[],
    power_mode=None,
    out_of_conditions=[],
    budget=None,
    models=[],
    policies=[],
    chooser_j=None,
    chooser_share=None,
    judged=EstimatesJudged(None, None, 0.0, 0.0, 0, 0, None),
)


def test_all_that_is_known_is_told() -> None:
    assert power_lines(POWER) == [
        "power: 7.26 W now, 6.50 W in the mean, 3.10 W idle, read 20 times a second (VDD_IN); power mode 0 MAXN",
        "board: GPU load 37%, BCPU-therm 41 °C, thermal-fan-est 40 °C, JetPack 4.6.1",
        "  rail VDD_4V0_WIFI is not read: Input/output error",
        "power budget: 6 W; level 1, the most expensive model of each family run only where a request names them",
        "battery: 18 %, discharging; reserve 20 %: requests are answered by what takes least energy",
        "out of its conditions: idle power: power mode changed from '1 MAXQ' to '0 MAXN'",
        "choosing took 110 mJ, 11% of what choosing and models took",
        "above idle since the start: 1.65 kJ ± 75 J measured, 1.5 kJ estimated for 18 of 20 answers; "
        "measured over estimated: 1.10",
    ]


def test_without_a_sensor_the_reason_is_all() -> None:
    assert power_lines(NOTHING) == ["power: not measured: no power sensor under /sys"]
    assert energy_tables(NOTHING) == []


def test_what_is_not_known_yet_is_said_to_be_so() -> None:
    early = msgspec.structs.replace(
        POWER, watts=None, mean_w=None, idle_w=None, idle_reason="idle power was not measured", total_of=["A", "B"]
    )
    early = msgspec.structs.replace(early, rate_hz=None, judged=EstimatesJudged(None, None, 0.0, 0.5, 3, 0, None))
    told = power_lines(early)
    assert told[0].startswith("power: not known now (A + B)")
    assert any("idle power was not measured" in line for line in told)
    assert "nothing measured, 500 mJ estimated for 3 of 3" in told[-1]


def test_the_tables_have_a_row_for_each_model_and_policy() -> None:
    console = Console(width=140, highlight=False, markup=False)
    with console.capture() as captured:
        for table in energy_tables(POWER):
            console.print(table)
    rows = [line.split() for line in captured.get().splitlines()]
    assert ["m", "f", "20", "1.25", "J", "62.5"] in rows
    assert ["[red]", "f", "3", "-", "-"] in rows
    assert ["cascade", "f", "18", "1.5", "kJ", "83333", "-20.4", "mJ"] in rows
    (single,) = [row for row in rows if row[:1] == ["single:m"]]
    assert single[-1] == "-"
