"""What commands print: answers, the daemon's state, tables, `jetsel top`'s page, and the end of `jetsel calibrate`."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from jetsel import wire
from jetsel.base.errors import BusyError
from jetsel.calibrate.judge.findings import Findings, Interval, PromiseCheck
from jetsel.cli import answers
from jetsel.cli.answers import Outcome, as_plain, print_table
from jetsel.cli.calibrate import outcome_lines
from jetsel.cli.status import page
from jetsel.cli.status_text import details, family_lines, fault_lines, headline, load_lines, power_lines
from jetsel.cli.terminal import console, promises_table
from jetsel.wire.counts import AnswerCounts, Histogram
from jetsel.wire.power import BudgetStatus, DroppedRail, EstimatesJudged, PowerStatus
from jetsel.wire.status import HostStatus, PromiseStatus, ReloadStatus
from tests.unit.calibrate.report import sample
from tests.unit.client.peer import BOUNDS_MS, UNMEASURED, Seen, answer, status
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


def outcome(result: Any = None, **changes: Any) -> Outcome:
    explain = changes.pop("explain", False)
    found = answer(Seen(wire.Classify(1, "x", explain=explain), b""), label="tabby, small")
    return Outcome("cat.jpg", 12.34567, result or msgspec.structs.replace(found, **changes))


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """The lines of the table of some outcomes, without the empty ones."""

    def lines(*outcomes: Outcome) -> list[str]:
        print_table(outcomes)
        return [line for line in capsys.readouterr().out.splitlines() if line.strip()]

    return lines


def test_the_json_object_is_the_reply_with_the_path_and_the_time_here() -> None:
    found = outcome()
    plain = as_plain(found)
    assert (plain.pop("path"), plain.pop("latency_ms")) == ("cat.jpg", 12.346)
    assert msgspec.convert(plain, wire.Answer) == found.result


def test_a_failure_has_its_code_instead_of_an_answer() -> None:
    assert as_plain(outcome(BusyError("full:\n  wait"))) == {
        "path": "cat.jpg",
        "error": {"code": "busy", "message": "full: wait", "retry": True},
    }
    assert as_plain(outcome(FileNotFoundError(2, "No such file or directory"))) == {
        "path": "cat.jpg",
        "error": {"code": "unreadable", "message": "No such file or directory", "retry": False},
    }


def test_a_row_says_who_answered_and_what_it_took_without_waiting(printed: Printed) -> None:
    stages = wire.Stages(
        queue=900.0, decode=2.0, features=None, choice=0.5, inference=[4.0, 24.0], total=1000.0, waiting=80.0, input=1.5
    )
    ran = [wire.Ran("s", "first rung", 0.4, 4.0, 1), wire.Ran("m", "s was not sure", 0.75, 24.0, 4)]  # four in a batch
    waited = outcome(energy_mj=12.34, energy_reason=None, stages_ms=stages, ran=ran)
    lines = printed(waited, outcome(in_doubt=True, energy_reason="no meter"))
    assert lines[2].split() == ["cat.jpg", "tabby,", "small", "75%", "m", "s,", "m", "14.0", "12.3"]
    assert lines[3].split() == ["cat.jpg", "tabby,", "small", "(in", "doubt)", "75%", "m", "m", "2.50", "-"]
    assert lines[4] == "energy not known: no meter"


def test_names_that_look_like_markup_are_printed_as_they_are(printed: Printed) -> None:
    strange = msgspec.structs.replace(outcome().result, label="[bold]x[/]", model="[red]")  # type: ignore[type-var]
    row = printed(Outcome("[/a].jpg", 1.0, strange))[2]
    for name in ("[/a].jpg", "[bold]x[/]", "[red]"):
        assert name in row


def test_energy_is_marked_as_estimated(printed: Printed) -> None:
    estimated = outcome(energy_mj=12.34, energy_reason=None, energy_estimated=True)
    assert any("12.3 mJ (estimated" in line for line in answers.details(estimated))
    assert printed(estimated)[2].split()[-1] == "~12.3"


def test_promises_are_kept_or_broken_and_what_is_not_known_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    def check(
        level: float, answered: float, wrong: float | None, ends: Interval | None, *, is_kept: bool
    ) -> PromiseCheck:
        return PromiseCheck(
            policy="s", wrong_at_most=level, answered=answered, wrong=wrong, wrong_interval=ends, is_kept=is_kept
        )

    nothing = check(0.01, 0.0, None, None, is_kept=True)
    broken = check(0.1, 0.824, 0.153, Interval(0.121, 0.192), is_kept=False)
    console().print(promises_table([nothing, broken]))
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert {"1 0.0 - - kept", "10 82.4 15.3 12.1 to 19.2 broken"} <= set(printed)


FIRST = replace(status(Seen(wire.Status(1, "x"), None)), uptime_s=100.0, requests={"ok": 10, "busy": 1})


def shown(before: wire.StatusReply | None, now: wire.StatusReply, gone: str = "") -> list[str]:
    console = Console(width=200, height=100, highlight=False)
    with console.capture() as captured:
        console.print(page(before, now, "12:00:01", gone))
    return captured.get().splitlines()


def test_another_daemon_is_counted_since_its_start() -> None:
    restarted = replace(FIRST, instance="another", uptime_s=4.0, requests={"ok": 2})
    for before in (None, FIRST):
        assert "rate: 0.5 requests/s since the start: 0.5 ok" in shown(before, restarted)


OUTCOME = {"installed": None, "daemon": None, "report": None, "is_served": False}


def outcome_printed(findings: Findings, columns: int) -> list[str]:
    """The lines on a terminal of this width."""
    out = Console(width=columns, highlight=False, markup=False)
    with out.capture() as captured:
        for line in outcome_lines(findings, OUTCOME):
            out.print(line, soft_wrap=isinstance(line, str))
    return captured.get().splitlines()


def test_without_the_page_the_report_is_printed_and_the_extra_is_named() -> None:
    lines = outcome_printed(sample.findings(), 100)
    text = "\n".join(lines)
    for said in (
        "cascade (in use now)",
        "oracle",
        "by 101 neighbours in n_keypoints and contrast",
        "cascade answers 41 % of the images",
    ):
        assert said in text
    assert "pip install 'jetsel[calibrate]'" in lines[-1]


def test_the_table_of_twelve_models_fits_fifteen_lines_of_a_hundred_columns() -> None:
    lines = outcome_printed(sample.of_twelve_models(), 100)
    end = next(place for place, line in enumerate(lines) if line.startswith("The premodel"))
    assert end <= 15
    assert max(map(len, lines[:end])) <= 100
    names = [line.split()[0] for line in lines[3 : end - 1]]
    assert names[:3] == ["cascade", "the", "chain"]
    assert {"single:lite11-420-int8", "oracle"} <= set(names)
    assert "single:lite4-280-int8" not in names, "faster ones are more accurate"
    assert lines[end - 1].startswith("not shown: 5 single models")


@pytest.mark.parametrize(
    ("changes", "done", "said"),
    [
        ({}, {"installed": 3, "is_served": True}, "installed as number 3: chain answers by default now, in place of"),
        ({"rival": "chain"}, {"installed": 3, "is_served": True}, "installed as number 3: chain goes on answering"),
        ({}, {"installed": 3}, "installed as number 3: its default policy is chain;"),  # another daemon, or none
        ({}, {}, "nothing was installed: single:xl remains in use; --force installs chain"),
        ({"rival": "chain"}, {}, "nothing was installed: chain remains in use; --policy NAME installs another"),
        ({"is_allowed": False}, {}, "nothing was installed: no policy is within the limits"),
    ],
)
def test_one_sentence_names_what_is_installed_and_what_that_changes(
    changes: dict[str, Any], done: dict[str, object], said: str
) -> None:
    allowed = changes.pop("is_allowed", True)
    findings = replace(sample.findings(), is_allowed=allowed)
    findings = sample.with_facts(findings, default_policy="chain", **changes)
    assert any(str(line).startswith(said) for line in outcome_lines(findings, OUTCOME | done))
