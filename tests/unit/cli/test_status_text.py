"""The daemon's state in print: what an operator acts on, and only that."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from jetsel import wire
from jetsel.cli.status_text import details, family_lines, fault_lines, headline, load_lines, power_lines
from jetsel.wire.counts import AnswerCounts, Histogram
from jetsel.wire.power import BudgetStatus, DroppedRail, EstimatesJudged, PowerStatus
from jetsel.wire.status import (
    HostStatus,
    PromiseStatus,
    ReloadStatus,
)
from tests.unit.client.peer import BOUNDS_MS, UNMEASURED, Seen, status
from tests.unit.hollow import hollow

REPLY = status(Seen(wire.Status(1, "x"), None))
FAMILY = REPLY.families[0]


def test_a_healthy_daemon_fits_on_a_screen() -> None:
    assert len(list(details(REPLY))) < 25


def test_load_has_outcomes_rate_queue_and_latency() -> None:
    requests, rate, queue, latency = load_lines(REPLY)[:4]
    assert "7 ok, 1 busy" in requests
    assert "3 replies lost" in requests
    assert "since the start" in rate
    assert "2 of 128 requests, 1 waiting" in queue
    assert [word for word in latency.split() if word[0].isdigit()] == ["50%", "5.50", "95%", "8.00", "99%", "8.00"]


def test_load_counts_from_the_status_before() -> None:
    stages = {"total": Histogram([4, 2, 4, 1], 60.0), "decode": Histogram([4, 0, 0, 0], 2.0)}
    counts = AnswerCounts(bounds_ms=BOUNDS_MS, stages=stages)
    later = replace(REPLY, uptime_s=REPLY.uptime_s + 2.0, requests={"ok": 11, "busy": 1}, answers=counts)
    lines = load_lines(later, REPLY)
    assert "2.0 requests/s in the last 2.0 s: 2.0 ok" in lines[1]
    assert "50% within 1.00 ms" in lines[3], "of the four new ones alone"
    assert "decode 0.50" in lines[4]
    assert len(load_lines(later, later)) == 3, "without answers there is no latency"


def test_a_family_names_its_policy_its_models_and_why_one_is_unavailable() -> None:
    lines = family_lines(FAMILY)
    assert "policy: cascade (it does best)" in lines[0]
    assert [part.split(": ")[1] for part in lines[1].split(";")] == ["m", "none"]
    assert lines[-2:] == ["  ready on onnxruntime: m (7 runs)", "  big is unavailable: out of memory"]
    other = family_lines(replace(FAMILY, fallback=None, calibration="number 3", objective="time"))
    assert [part.split(": ")[1] for part in other[1].split(";")] == ["refuse", "number 3 (to save time)"]


def test_a_default_promise_that_no_calibration_keeps_has_its_repair() -> None:
    def promised(**changes: Any) -> list[str]:
        return [line for line in family_lines(replace(FAMILY, **changes)) if "promise" in line]

    assert promised() == promised(wrong_at_most=1.0) == []
    (kept,) = promised(wrong_at_most=0.05, promises=[PromiseStatus(0.05, 0.87)])
    (missing,) = promised(wrong_at_most=0.05)
    assert "jetsel calibrate" not in kept
    assert "jetsel calibrate" in missing


def test_faults_are_a_rejected_reload_an_engine_host_that_ended_and_what_was_left_out() -> None:
    ended = HostStatus("tensorrt", "running", None, 17, 1, "killed", 65.0)
    failed = HostStatus("tensorrt", "failed", "no interpreter", None, 0, None, None)
    reply = replace(REPLY, hosts=[ended, failed], last_reload=ReloadStatus(5, 0.1, [], "no model"))
    reload, restarted, away, broken = fault_lines(reply)
    assert "was rejected: no model" in reload
    assert "0:01:05 ago: killed" in restarted
    assert "failed: no interpreter" in away
    assert "/models/bad.json" in broken
    healthy = HostStatus("tensorrt", "running", None, 17, 0, None, None)
    assert fault_lines(replace(REPLY, hosts=[healthy], broken=[], last_reload=ReloadStatus(5, 0.1, ["model m"]))) == []


POWER = PowerStatus(
    total_of=["VDD_IN"],
    watts=7.256,
    mean_w=6.5,
    idle_w=3.1,
    dropped=[DroppedRail("VDD_4V0_WIFI", "Input/output error")],
    power_mode="0 MAXN",
    out_of_conditions=["power mode changed"],
    budget=BudgetStatus(6.0, 12.5, "leaves 12.5 mJ"),
    judged=EstimatesJudged(1650.0, 75.0, 3600.0, 1500.5, 20, 2, 1.0996),
)


def test_power_and_whether_the_estimates_hold() -> None:
    total, rail, budget, conditions, energy = power_lines(POWER)
    assert re.findall(r"[\d.]+ W", total) == ["7.26 W", "6.50 W", "3.10 W"]
    assert "(VDD_IN); power mode 0 MAXN" in total
    assert "VDD_4V0_WIFI is not read: Input/output error" in rail
    assert "6 W; it leaves 12.5 mJ" in budget
    assert "power mode changed" in conditions
    assert re.findall(r"\d[\d.]*", energy) == ["1650", "75", "1500", "18", "20", "1.10"]
    assert power_lines(UNMEASURED) == ["power: not measured: no power sensor under /sys"]


def test_what_a_daemon_of_another_version_does_not_send_is_shown_as_unknown() -> None:
    for reply in (wire.StatusReply(1, "a", "ready"), hollow()):
        shown = "\n".join([headline(reply), *details(reply)])
        assert "ready" in shown
        assert not re.search(r"None|\b\d", shown), shown
