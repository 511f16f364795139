"""The daemon's state in print: lines, one table for each family, and spans of time in words."""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import pytest
from rich.console import Console

from jetsel import wire
from jetsel.cli.status_text import (
    details,
    energy_tables,
    family_lines,
    general_lines,
    headline,
    models_table,
    power_lines,
    stages_table,
)
from jetsel.wire.power import (
    BatteryStatus,
    BudgetStatus,
    DroppedRail,
    EstimatesJudged,
    ModelEnergy,
    PolicyEnergy,
    PowerStatus,
)
from jetsel.wire.status import (
    CalibrationIdentity,
    DriftStatus,
    FrontPoint,
    FrontStatus,
    HostStatus,
    Percentiles,
    PromiseStatus,
    ReloadStatus,
    StageTimes,
)
from tests.unit.client.peer import UNMEASURED, Seen, status
from tests.unit.hollow import hollow

REPLY = status(Seen(wire.Status(1, "x"), None))


def test_the_daemon_as_a_whole_is_told_in_a_headline_and_lines() -> None:
    assert headline(REPLY).split(": ") == ["jetsel 9.9.9 is ready", "process 4711, up 1 d 2 h, 121 MB resident"]
    queue = "queue: 2 of 128 requests, 1 waiting; 1.5 of 64 MB, 0.5 of 100 megapixels"
    assert general_lines(REPLY) == ["requests: 7 ok, 1 busy; 3 replies lost to clients that do not read", queue]
    loading = msgspec.structs.replace(REPLY, state="loading", progress="building 2 of 5", resident_mb=None)
    assert headline(loading).startswith("jetsel 9.9.9 is loading (building 2 of 5): process 4711")
    quiet = msgspec.structs.replace(REPLY, requests={}, lost_replies=0)
    assert general_lines(quiet) == ["requests: none yet", queue]


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (ReloadStatus(65, 0.1, ["model m"], None), "the last, 1 min 5 s ago, changed: model m"),
        (ReloadStatus(5, 0.1, [], "no model"), "the last, 5 s ago, rejected: no model"),
    ],
    ids=["done", "refused"],
)
def test_reloads_are_told_with_how_the_last_one_ended(last: ReloadStatus, told: str) -> None:
    reply = msgspec.structs.replace(REPLY, reloads={"ok": 1, "reload-failed": 2}, last_reload=last)
    assert f"reloads: 1 ok, 2 reload-failed; {told}" in general_lines(reply)


def test_an_engine_host_is_told_with_its_restarts_and_how_the_one_before_it_ended() -> None:
    running = HostStatus("tensorrt", "running", None, 17, 1, "the engine host ended while running m: killed", 65.0)
    failed = HostStatus("tensorrt", "failed", "no interpreter", None, 0, None, None)
    assert general_lines(msgspec.structs.replace(REPLY, hosts=[running, failed]))[2:] == [
        "engine host for tensorrt: running as process 17, 1 restart",
        "  1 min 5 s ago: the engine host ended while running m: killed",
        "engine host for tensorrt: failed: no interpreter",
    ]


def test_the_stages_stand_side_by_side_in_milliseconds() -> None:
    quick = Percentiles(0.5, 1.25, 12.34)
    stages = StageTimes(1200, 65.0, quick, quick, None, quick, quick, quick, quick, quick)
    table = stages_table(stages)
    assert table is not None
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        console.print(table)
    rows = [line.split() for line in captured.get().splitlines()]
    assert rows[0][:9] == ["where", "the", "last", "1,200", "answers", "(1", "min", "5", "s)"]
    assert ["p99", "12.3", "12.3", "-", *["12.3"] * 5] in rows
    assert stages_table(StageTimes(0, None, *[None] * 8)) is None


def test_the_table_has_a_row_for_each_model_and_the_reason_of_one_that_failed() -> None:
    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        console.print(models_table(REPLY.families[0]))
    lines = captured.get().splitlines()
    assert lines[0].startswith("family f: 2 classes; ")
    assert lines[-3].split() == ["m", "onnxruntime", "ready", "53.1", "7", "43%", "1.50", "12.2", "15.0"]
    big = ["big", "tensorrt", "unavailable:", "out", "of", "memory", "-", "0", "-", "-", "-", "-"]
    assert lines[-2].split() == big


def test_eighty_columns_hold_the_names_of_the_models() -> None:
    names = [f"lite0-{side_px}" for side_px in (96, 128, 224)]
    family = REPLY.families[0]
    models = [msgspec.structs.replace(family.models[0], name=name, runs=12_345) for name in names]
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        console.print(models_table(msgspec.structs.replace(family, models=models)))
    rows = [line.split()[:3] for line in captured.get().splitlines()[-4:-1]]
    assert rows == [[name, "onnxruntime", "ready"] for name in names]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "none in 300 images; brightness changed most (index 0.07)"),
        ({"hint": "recalibrate"}, "recalibrate"),
        ({"highest": None, "indices": {}, "reason": "needs 200 images, has 12"}, "needs 200 images, has 12"),
    ],
    ids=["none", "moved", "too few"],
)
def test_whether_photographs_have_changed_is_told(change: dict[str, Any], told: str) -> None:
    quiet = DriftStatus(300, {"brightness": 0.07}, "brightness", 0.05, None, [], None, 1.0)
    family = msgspec.structs.replace(REPLY.families[0], drift=msgspec.structs.replace(quiet, **change))
    assert family_lines(family)[-1] == f"drift: {told}"


def test_what_decides_is_told_for_each_criterion_where_they_differ() -> None:
    assert family_lines(REPLY.families[0]) == [
        "policy: cascade for top1, single:m for top5 (it does best)",
        "a request may also name: single:m, cascade",
        "fallback if in doubt: m; calibration: none",
    ]
    alike = msgspec.structs.replace(
        REPLY.families[0], default_policy={"top1": "cascade", "top5": "cascade"}, fallback=None, calibration="of May"
    )
    assert family_lines(alike)[0] == "policy: cascade (it does best)"
    assert family_lines(alike)[2] == "fallback if in doubt: refuse; calibration: of May"


def test_a_family_tells_its_calibration_s_hash_and_how_many_answers_took_more_than_one_model() -> None:
    identity = CalibrationIdentity(3, "2026-11-21", "0123456789abcdef" * 4)
    family = msgspec.structs.replace(
        REPLY.families[0],
        answers=8,
        escalated=2,
        calibration="number 3",
        objective="time",
        calibration_identity=identity,
    )
    told = family_lines(family)
    assert told[0].startswith("escalated: 2 of 8 ")
    assert told[-1].endswith("calibration: number 3 (to save time, sha256 0123456789ab)")


def test_a_family_s_promise_and_its_levels_stand_on_one_line() -> None:
    levels = [PromiseStatus(0.02, 0.614), PromiseStatus(0.05, 0.87)]

    def told(wrong_at_most: float | None, promises: list[PromiseStatus]) -> list[str]:
        family = msgspec.structs.replace(REPLY.families[0], wrong_at_most=wrong_at_most, promises=promises)
        return [line.partition(": ")[2] for line in family_lines(family) if line.startswith("promised share")]

    assert told(0.05, levels) == ["0.05 by default; 0.02 answers 61%, 0.05 answers 87%"]
    assert told(1.0, levels[:1]) == ["none by default; 0.02 answers 61%"]
    assert told(0.05, []) == ["0.05 by default; none is calibrated: jetsel calibrate IMAGES"]
    assert told(None, []) == []


@pytest.mark.parametrize(
    ("last", "cheapest_s", "told"),
    [
        (None, 0.0, "none yet"),
        ("cascade", 0.0, "cascade, number 1 of 2: 90.1% right in 12.4 ms"),
        ("cascade:2", 65.0, "cascade:2, number 2 of 2: 70.0% right in 2.00 ms; cheapest in use for 1 min 5 s"),
        ("edge:l", 0.0, "edge:l"),
    ],
    ids=["none", "first", "cheapest", "edge"],
)
def test_the_operating_point_in_use_is_told(last: str | None, cheapest_s: float, told: str) -> None:
    points = [FrontPoint("cascade", 0.901, 12.4, 60.0, 5), FrontPoint("cascade:2", 0.7, 2.0, None, 3)]
    family = msgspec.structs.replace(REPLY.families[0], front=FrontStatus(points, last, "cascade:2", cheapest_s))
    assert f"operating point: {told}" in family_lines(family)


def test_a_front_of_one_point_is_not_told() -> None:
    front = FrontStatus([FrontPoint("cascade", 0.9, 12.4, 60.0, 5)], "cascade", "cascade", 0.0)
    family = msgspec.structs.replace(REPLY.families[0], front=front)
    assert family_lines(family) == family_lines(REPLY.families[0])


def test_what_is_not_offered_is_named_with_its_reason() -> None:
    family = msgspec.structs.replace(REPLY.families[0], not_offered={"l-int8": "takes 1.3 times as long as l here"})
    assert any("l-int8 takes 1.3 times" in line for line in family_lines(family))
    assert not any("not offered" in line for line in family_lines(REPLY.families[0]))


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
    budget=BudgetStatus(6.0, 12.5, "leaves 12.5 mJ for each request: the mean power is above the budget"),
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
    battery=BatteryStatus(18.4, True, None),
    temperatures_c={"BCPU-therm": 41.2, "thermal-fan-est": 40.0},
)


def test_all_that_is_known_is_told() -> None:
    assert power_lines(POWER) == [
        "power: 7.26 W now, 6.50 W on average, 3.10 W idle, read 20 times a second (VDD_IN); power mode 0 MAXN",
        "board: GPU load 37%, BCPU-therm 41 °C, thermal-fan-est 40 °C, JetPack 4.6.1",
        "  rail VDD_4V0_WIFI is not read: Input/output error",
        "power budget: 6 W; it leaves 12.5 mJ for each request: the mean power is above the budget",
        "battery: 18 %, discharging",
        "outside the conditions of the calibration: idle power: power mode changed from '1 MAXQ' to '0 MAXN'",
        "choosing took 110 mJ, 11% of the energy of choosing and runs",
        "above idle since the start: 1.65 kJ ± 75 J measured, 1.5 kJ estimated for 18 of 20 answers; "
        "ratio of measured to estimated: 1.10",
    ]


def test_without_a_sensor_the_reason_is_all() -> None:
    assert power_lines(UNMEASURED) == ["power: not measured: no power sensor under /sys"]
    assert energy_tables(UNMEASURED) == []


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


def test_what_a_daemon_of_another_version_does_not_send_is_shown_as_unknown() -> None:
    for reply in (wire.StatusReply(1, "a", "ready"), hollow()):
        shown = io.StringIO()
        for part in (headline(reply), *details(reply)):
            Console(file=shown, width=200).print(part)
        assert "ready" in shown.getvalue()
        assert not re.search(r"None|\b\d", shown.getvalue()), shown.getvalue()
