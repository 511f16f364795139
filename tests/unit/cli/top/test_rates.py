"""What happened between two looks at a daemon: by hand, over restarts, and where a count began anew."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from jetsel import wire
from jetsel.cli.top.rates import rates
from tests.unit.cli.test_power_status import POWER
from tests.unit.client.peer import Seen, status

FIRST = replace(status(Seen(wire.Status(1, "x"), None)), uptime_s=100.0, requests={"ok": 10, "busy": 1})


def later(**changes: Any) -> wire.StatusReply:
    return replace(FIRST, uptime_s=102.0, **changes)


def with_model(reply: wire.StatusReply, **changes: Any) -> wire.StatusReply:
    family = reply.families[0]
    return replace(reply, families=[replace(family, models=[replace(family.models[0], **changes), family.models[1]])])


def test_counts_are_shared_out_over_the_daemon_s_own_time() -> None:
    found = rates(FIRST, later(requests={"ok": 14, "busy": 1, "deadline": 3}, lost_replies=4))
    assert (found.seconds, found.since_start) == (2.0, False)
    assert found.outcomes == {"ok": 2.0, "busy": 0.0, "deadline": 1.5}
    assert found.requests == 3.5
    assert found.lost == 0.5


def test_models_have_their_runs_and_the_share_that_another_followed() -> None:
    before, now = with_model(FIRST, runs=20, escalations=10), with_model(later(), runs=30, escalations=12)
    found = rates(before, now)
    assert found.runs == {("f", "m"): 5.0, ("f", "big"): 0.0}
    assert found.escalated == {("f", "m"): 0.2}, "who has not run has no share"


def test_a_model_that_was_loaded_anew_counts_from_nothing() -> None:
    found = rates(with_model(FIRST, runs=20, escalations=10), with_model(later(), runs=4, escalations=1))
    assert found.runs[("f", "m")] == 2.0
    assert found.escalated[("f", "m")] == 0.25


def test_the_first_look_and_one_at_another_daemon_are_of_all_its_time() -> None:
    for before, now in (
        (None, FIRST),
        (later(pid=1), FIRST),
        (replace(FIRST, uptime_s=500.0), FIRST),  # the same number for another process
    ):
        found = rates(before, now)
        assert (found.seconds, found.since_start) == (100.0, True)
        assert found.outcomes == {"ok": 0.1, "busy": 0.01}


def test_the_energy_of_an_answer_is_that_of_the_answers_since() -> None:
    def power(answers: int, joules: float) -> wire.PowerStatus:
        mean = wire.PolicyEnergy("f", "cascade", answers + 5, joules, joules * 1e3 / answers, 4.0, None, "not known")
        nothing = wire.PolicyEnergy("f", "single:m", 7, None, None, None, None, "not known")
        return replace(POWER, policies=[mean, nothing])

    assert rates(replace(FIRST, power=power(10, 1.0)), later(power=power(14, 1.2))).energy_mj == 50.0
    assert rates(replace(FIRST, power=power(10, 1.0)), later(power=power(10, 1.0))).energy_mj is None
    assert rates(FIRST, later()).energy_mj is None
